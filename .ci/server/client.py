"""OpenAI's client for Python leads a conversation with a script."""

import sys

from openai import APIStatusError, AuthenticationError, BadRequestError, NotFoundError, OpenAI

MODEL = "first_talk"


def expect(error: type[APIStatusError], code: str, call) -> None:
    try:
        call()
    except error as caught:
        assert caught.code == code, caught
        return
    raise AssertionError(f"no {error.__name__}")


def main(url: str, token: str) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key=token)
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).owned_by == "bcc-script"
    completions = client.chat.completions
    history: list = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]

    opening = completions.create(model=MODEL, messages=history, temperature=0.2).choices[0]
    assert opening.finish_reason == "stop" and "call you" in opening.message.content
    history += [opening.message.model_dump(exclude_none=True), {"role": "user", "content": "Ann"}]

    pieces, usage = [], None
    for chunk in completions.create(model=MODEL, messages=history, stream=True, stream_options={"include_usage": True}):
        pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        usage = chunk.usage or usage
    asked = "".join(pieces)
    assert "Ann" in asked and usage is not None, (asked, usage)
    before = list(history)
    history += [{"role": "assistant", "content": asked}, {"role": "user", "content": [{"type": "text", "text": "9"}]}]

    last = completions.with_raw_response.create(model=MODEL, messages=history)
    session = last.headers["x-session-id"]
    assert "Ann" in last.parse().choices[0].message.content

    # Another name, and nothing of the first conversation.
    before[-1] = {"role": "user", "content": "Bob"}
    other = completions.with_raw_response.create(model=MODEL, messages=before)
    said = other.parse().choices[0].message.content
    assert other.headers["x-session-id"] != session and "Bob" in said and "Ann" not in said, said

    expect(NotFoundError, "not-found", lambda: completions.create(model="nothing", messages=history))
    task = [{"role": "user", "content": "### Task:\nGenerate a title."}]
    expect(BadRequestError, "invalid-request", lambda: completions.create(model=MODEL, messages=task))
    stranger = OpenAI(base_url=f"{url}/v1", api_key="nobody")
    expect(AuthenticationError, "unauthorized", lambda: stranger.models.list())
    print("the client for Python: ok")


main(*sys.argv[1:])
