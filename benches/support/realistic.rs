//! Realistic scripts of any length: phases, topics, questions with outputs, messages, thoughts, assignments and conditions, in Chinese.
//! The check reports nothing for them.

use std::fmt::Write;

/// Texts of typical lengths. Each use adds a number, so that no two texts of a script are the same.
const TEXTS: [&str; 4] = [
    "最近一周你睡得怎么样？可以从昨天晚上说起，想到什么就说什么。",
    "谢谢你愿意说这些。刚才你提到晚上常常醒来，醒来以后你一般会做什么，脑子里在想什么？",
    "我听到的是：白天事情多，到了晚上才有自己的时间，所以舍不得睡。这样理解对吗？如果不对，请你纠正我。",
    "如果用一到十来打分，十分是最有精神，今天的你大概是几分？",
];

/// A script of at least `lines` lines, with complete actions. `number` makes scripts differ.
pub(crate) fn script(lines: usize, number: usize) -> String {
    let mut script = format!(
        "# 睡眠访谈，第 {number} 份\nsession:\n  session_id: sleep_{number}\n  session_name: 睡眠与精力的访谈\n  global_goal: 了解来访者最近的睡眠、白天的精力，以及他自己想改变什么\n  \
         declare:\n    - {{ var: 称呼, type: string, define: 来访者希望被怎样称呼 }}\n    - {{ var: score, type: integer, value: 5, define: 精力的分数 }}\n  phases:\n"
    );
    let mut written_lines = script.matches('\n').count();
    let mut action = 0;
    while written_lines < lines {
        let before = script.len();
        if action % 24 == 0 {
            let phase = action / 24;
            let _ = write!(
                script,
                "    - phase_id: phase_{phase}\n      phase_name: 第 {phase} 部分\n      phase_goal: 把这一段时间的情况问清楚\n      topics:\n"
            );
        }
        if action % 6 == 0 {
            let topic = action / 6;
            let _ = write!(
                script,
                "        - topic_id: topic_{topic}\n          topic_name: 话题 {topic}\n          topic_goal: \"知道{{{{ 称呼 }}}}在第 {topic} 个话题上的看法\"\n          \
                 declare:\n            - {{ var: answer_{topic}, type: string, define: 来访者的回答 }}\n            - {{ var: round_{topic}, type: integer, value: 0 }}\n          actions:\n"
            );
        }
        write_action(&mut script, action);
        written_lines += script.get(before..).unwrap_or_default().matches('\n').count();
        action += 1;
    }
    script
}

fn write_action(script: &mut String, action: usize) {
    let topic = action / 6;
    let text = TEXTS.get(action % TEXTS.len()).copied().unwrap_or_default();
    let _ = match action % 6 {
        0 | 3 => write!(
            script,
            "            # 先听，再追问\n            - action_type: ai_ask\n              action_id: ask_{action}\n              config:\n                \
             content: \"{{{{ 称呼 | default('你') }}}}，第 {action} 问：{text}\"\n                tone: 温和、不评判\n                exit: 来访者说出了具体的一次经历\n                max_rounds: 3\n                \
             output:\n                  - get: answer_{topic}\n                    define: 来访者对第 {action} 个问题的回答，用他自己的话\n                    required: true\n\n"
        ),
        1 => write!(
            script,
            "            - action_type: ai_say\n              action_id: say_{action}\n              config:\n                content: |\n                  {text}（{action}）\n                  \
             {{% if score > 6 %}}听起来你今天精神不错。{{% else %}}听起来你有些累。{{% endif %}}\n                  我们慢慢来，不着急。\n                tone: 平静\n\n"
        ),
        2 => write!(
            script,
            "            - action_type: ai_think\n              action_id: think_{action}\n              condition: answer_{topic} is not none and score >= 3\n              config:\n                \
             content: 从第 {action} 段话里找出他最在意的一件事\n                output:\n                  - get: focus_{action}\n                    define: 他最在意的事\n                    type: string\n\n"
        ),
        4 => write!(
            script,
            "            - action_type: set\n              action_id: set_{action}\n              config:\n                values:\n                  round_{topic}: \"{{{{ round_{topic} + 1 }}}}\"\n                  score: 6\n\n"
        ),
        _ => write!(
            script,
            "            - action_type: condition\n              action_id: branch_{action}\n              config:\n                cases:\n                  - when: score >= 8 and round_{topic} < 3\n                    \
             actions:\n                      - action_type: ai_say\n                        action_id: high_{action}\n                        config:\n                          content: {text}（{action}）\n                  \
             - when: answer_{topic} is none\n                    actions:\n                      - action_type: set\n                        action_id: low_{action}\n                        config:\n                          values: {{ score: 1 }}\n\n"
        ),
    };
}
