// Writes scripts to be drawn: node crowd.mjs FOLDER. One of two hundred actions, and one whose names mean something to whoever
// reads a drawing.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const say = (id, indent) => `${indent}- { action_type: ai_say, action_id: ${id}, config: { content: 好, delivery: verbatim } }\n`;

let crowd = `session:
  session_id: crowd
  session_name: 两百个动作
  on_exit: { error: { goto: closing }, user_blocked: { insert: comfort, then: resume } }
  triggers: [{ trigger_id: crisis, when: "last_user_message is regex('自杀')", insert: safety, then: end }]
  declare: [{ var: mood, type: string }, { var: people, type: list, value: [] }]
  skills:
    - { skill_id: comfort, actions: [{ action_type: ai_say, action_id: soothe, config: { content: 好, delivery: verbatim } }] }
    - { skill_id: safety, actions: [{ action_type: ai_say, action_id: protect, config: { content: 好, delivery: verbatim } }] }
  phases:
`;
for (let phase = 0; phase < 8; phase += 1) {
  crowd += `    - phase_id: ${phase === 7 ? 'closing' : `phase_${phase}`}\n      phase_name: 第${phase + 1}阶段\n      topics:\n`;
  for (let topic = 0; topic < 5; topic += 1) {
    crowd += `        - topic_id: topic_${phase}_${topic}\n`;
    if (topic === 2) crowd += '          for_each: { in: people, as: person }\n';
    if (topic === 3) crowd += '          on_exit: { max_rounds_reached: skip_topic }\n';
    crowd += '          actions:\n';
    for (let action = 0; action < 5; action += 1) {
      const id = `say_${phase}_${topic}_${action}`;
      const indent = '            ';
      if (action === 4 && topic === 0) {
        crowd += `${indent}- { action_type: ai_ask, action_id: ${id}, on_exit: { off_topic: { goto: closing }, error: retry }, config: { content: 好 } }\n`;
      } else if (action === 2 && topic === 1) {
        crowd += `${indent}- action_type: condition\n${indent}  action_id: ${id}\n${indent}  config:\n${indent}    cases:\n`;
        crowd += `${indent}      - { when: mood == 'bad', goto: topic_${(phase + 1) % 8}_0 }\n`;
        crowd += `${indent}      - when: mood == 'good'\n${indent}        actions:\n${say(`${id}_good`, `${indent}          `)}`;
      } else if (action === 3 && topic === 4) {
        crowd += `${indent}- { action_type: use_skill, action_id: ${id}, config: { skill: comfort } }\n`;
      } else {
        crowd += say(id, indent);
      }
    }
  }
}
writeFileSync(join(folder, 'crowd.yaml'), crowd);

const names = [
  'end', 'subgraph', 'a"b', 'x] --> y[', '1. first', '- item', '# head', '**bold** _it_ `code`', '<b>&amp;</b>', '%%{init}%%', '$$x$$',
  'a\\', '\\n', '{{ x }}', 'a;b|c', 'click n1 "x"', '焦虑'.repeat(60), 'e\u0301 👩‍👩‍👧 ا\u202eب', 'line\nbreak', '&#35;', '#quot;', '~~~', "it's", '(((', ')))',
];
let odd = 'session:\n  session_id: end\n  session_name: "subgraph \\"end\\""\n  declare: [{ var: mood, type: string }]\n  phases:\n';
names.forEach((name, number) => {
  const quoted = JSON.stringify(name);
  odd += `    - phase_id: ${number === 0 ? 'end' : `p${number}`}\n      phase_name: ${quoted}\n      topics:\n`;
  odd += `        - topic_id: t${number}\n          topic_name: ${quoted}\n          actions:\n`;
  odd += `            - action_type: condition\n              action_id: style${number}\n              config:\n                cases:\n`;
  odd += `                  - { when: ${JSON.stringify(`mood == ${JSON.stringify(name.replaceAll('\\', ''))}`)}, goto: t${(number + 7) % names.length} }\n`;
});
writeFileSync(join(folder, 'odd.yaml'), odd);
