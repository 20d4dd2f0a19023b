// OpenAI's client for JavaScript leads a conversation with a script.

import assert from "node:assert/strict";
import OpenAI, { NotFoundError } from "openai";

const [url, token] = process.argv.slice(2);
const model = "first_talk";
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });

const models = await client.models.list();
assert.deepEqual(models.data.map((model) => model.id), [model]);

const messages = [{ role: "user", content: "Hello" }];
const opening = await client.chat.completions.create({ model, messages });
assert.match(opening.choices[0].message.content, /call you/);
messages.push(opening.choices[0].message, { role: "user", content: "Carla" });

let asked = "";
const stream = await client.chat.completions.create({ model, messages, stream: true });
for await (const chunk of stream) {
  asked += chunk.choices[0]?.delta?.content ?? "";
}
assert.match(asked, /Carla/);
messages.push({ role: "assistant", content: asked }, { role: "user", content: "9" });
const last = await client.chat.completions.create({ model, messages });
assert.match(last.choices[0].message.content, /Carla/);

await assert.rejects(client.chat.completions.create({ model: "nothing", messages }), NotFoundError);
console.log("the client for JavaScript: ok");
