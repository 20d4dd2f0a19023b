//! Tests of filling outputs: never the opposite of the answer, and nothing if it is unclear.

use super::fill;
use crate::model::request::WantedOutput;
use bcc_lang::value::declared::DeclaredType::{self, Boolean, Date, Integer, List, Number, Object, String};
use serde_json::{Value, json};

fn filled(declared: Option<DeclaredType>, choices: &Value, text: &str) -> Value {
    let choices = choices.as_array().cloned().unwrap_or_default();
    fill(&WantedOutput { declared, choices, ..WantedOutput::default() }, text)
}

/// Answers that contain a choice, yes, no or a number, but do not mean it.
const UNCLEAR: &str = "不好|不太好|没那么好|不是很好|不是很开心|不开心|好什么好|没问题|不错|还不错|没关系|不要茶|不想喝茶|茶就算了|\
    not good|not bad|not really|no problem|No problem!|never good|isn't good|It isn’t good|\
    I don't have any problem|good for nothing|yes and no|对不起|不过|也许|不是 3|没有 3 次|not 3|\
    I don't think it was 3";

#[test]
fn negations_and_unclear_answers_fill_nothing() {
    let choices = json!(["好", "good", "bad", "开心", "问题", "problem", "茶", "错", "really", "关系"]);
    let numbers = json!([1, 2, 3]);
    for text in UNCLEAR.split('|') {
        assert_eq!(filled(Some(Boolean), &Value::Null, text), Value::Null, "{text}");
        for declared in [None, Some(String), Some(List)] {
            assert_eq!(filled(declared, &choices, text), Value::Null, "{text}");
        }
        for declared in [Number, Integer] {
            assert_eq!(filled(Some(declared), &Value::Null, text), Value::Null, "{text}");
            assert_eq!(filled(Some(declared), &numbers, text), Value::Null, "{text}");
        }
    }
}

#[test]
fn yes_and_no_must_be_complete_answers() {
    let table = [
        (json!(true), "是|对|好啊|嗯|没错|yes|Yes, sure|Y|TRUE|愿意。| 可以！ |有"),
        (json!(false), "不是|没有|不|否|无|no|N|false|不愿意|没有。|No!"),
        (
            Value::Null,
            "是的，我有|有过一次|没有啊，是别人|未曾|是的，不过很少|对不起，没有|Yes, I do.|I don't|It isn’t|没错，是这样|I know|nothing|ISN'T|35|🙂|",
        ),
    ];
    for (expected, texts) in table {
        for text in texts.split('|') {
            assert_eq!(filled(Some(Boolean), &Value::Null, text), expected, "{text:?}");
        }
    }
}

#[test]
fn a_number_must_be_the_only_one_in_the_answer() {
    let table = [
        ("35", json!(35)),
        ("３５岁", json!(35)),
        ("１．５", json!(1.5)),
        ("-5", json!(-5)),
        ("－５度", json!(-5)),
        ("温度−2.5度", json!(-2.5)),
        ("3.25", json!(3.25)),
        ("3.", json!(3)),
        ("age 35.", json!(35)),
        ("about a 2", json!(2)),
        ("0 times", json!(0)),
        ("10 分！", json!(10)),
        ("13800001111", json!(13_800_001_111_i64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("大概两分吧", json!(2)),
        ("大概两个", json!(2)),
        ("三十五岁", json!(35)),
        ("我三十五岁", json!(35)),
        ("十五", json!(15)),
        ("二十", json!(20)),
        ("七分。", json!(7)),
        ("一共5个", json!(5)),
        ("万一有3个", json!(3)),
    ];
    for (text, expected) in table {
        assert_eq!(filled(Some(Number), &Value::Null, text), expected, "{text:?}");
    }
    let none = "3-5岁|1,2,3|1234,567|1,200 元|1,234,567.5|007|我今年35岁，有2个孩子|3万|3.5万|3万5千|3万5|3万5000|三点五|三点二五|三点半|\
                三点十五分|两百万|一百|一百五|一百零五|一百一十|两千零二十六|二〇二六|一万零五百|一亿三千万|三万亿|百万|十分钟|\
                我十分开心|我一般睡六个小时|一点都不|一般|零下五度|零下太冷|负十二|负责|child_2_age：7|B12 和 v1.2|没有|-||十十十";
    for text in none.split('|').map(str::to_owned).chain(["9".repeat(400)]) {
        assert_eq!(filled(Some(Number), &Value::Null, &text), Value::Null, "{text:?}");
    }
}

#[test]
fn a_date_must_be_the_complete_answer() {
    let formats =
        "2026-11-21|2026/11/21|2026.11.21|2026年11月21日|2026 年 11 月 21 号|２０２６年１１月２１日|2026-11-21。";
    for text in formats.split('|') {
        assert_eq!(filled(Some(Date), &Value::Null, text), "2026-11-21", "{text:?}");
    }
    assert_eq!(filled(Some(Date), &Value::Null, "1990.1.5"), "1990-01-05");
    assert_eq!(filled(Some(Date), &Value::Null, "2026-11-21T20:00:00Z"), "2026-11-21T20:00:00Z");
    let none = "出生于 1990/1/5。|二〇二六年十一月二十一日|一九九〇年一月五号|35岁，2026-01-05来的|2026-02-30|2026-13-01 或 2026-12-01|\
                11月21日|026-11-21|12026-11-21|2026年|2026-11-|99999999999999999999-1-1|昨天|";
    for text in none.split('|') {
        assert_eq!(filled(Some(Date), &Value::Null, text), Value::Null, "{text:?}");
    }
}

#[test]
fn each_type_accepts_matching_values() {
    let table = [
        (None, " 我叫小林 ", json!("我叫小林")),
        (Some(String), "{{ x }}", json!("{{ x }}")),
        (Some(Number), "2.5 小时", json!(2.5)),
        (Some(Integer), "2.5 小时", Value::Null),
        (Some(Integer), "3.0", json!(3)),
        (Some(List), "爸爸，妈妈、奶奶; 哥哥\n\n姐姐,", json!(["爸爸", "妈妈", "奶奶", "哥哥", "姐姐"])),
        (Some(List), "，、", Value::Null),
        (Some(Object), "{\"a\": 1}", json!({ "a": 1 })),
        (Some(Object), "[1]", Value::Null),
        (Some(Object), "a: 1", Value::Null),
        (None, " \n\u{3000}", Value::Null),
    ];
    for (declared, text, expected) in table {
        assert_eq!(filled(declared, &Value::Null, text), expected, "{declared:?} from {text:?}");
    }
}

#[test]
fn with_choices_only_a_choice_is_returned() {
    let table = [
        (None, json!(["焦虑", "重度焦虑"]), "我有重度焦虑", json!("重度焦虑")),
        (None, json!(["茶", "咖啡", "白水"]), "来杯白水", json!("白水")),
        (None, json!(["茶", "咖啡", "白水"]), "咖啡或者茶", json!("咖啡")),
        (None, json!(["茶", "咖啡", "白水"]), "咖啡或者不喝", Value::Null),
        (None, json!(["好", "不好"]), "不好。", json!("不好")),
        (None, json!(["有", "没有", "要", "不要"]), "有没有", Value::Null),
        (None, json!(["有", "没有", "要", "不要"]), "要不要", Value::Null),
        (None, json!(["有", "没有", "要", "不要"]), "我没有", Value::Null),
        (None, json!(["有", "没有", "要", "不要"]), "没有。", json!("没有")),
        (None, json!(["app", "paper"]), "an app, mostly", json!("app")),
        (None, json!(["app", "paper"]), "apple", Value::Null),
        (Some(String), json!(["Low", "High"]), "HIGH", json!("High")),
        (Some(String), json!(["Low", "High"]), "rather HIGH i think", Value::Null),
        (None, json!(["male", "female"]), "female", json!("female")),
        (None, json!(["no", "maybe"]), "I don't know, maybe", Value::Null),
        (None, json!(["dog", "cat"]), "two dogs", Value::Null),
        (None, json!(["甲", "乙"]), "乙和甲", Value::Null),
        (None, json!(["甲", "乙"]), "丙", Value::Null),
        (Some(Integer), json!([1, 2, 3]), "三次", json!(3)),
        (Some(Integer), json!([1, 2, 3]), "四次", Value::Null),
        (Some(Boolean), json!([true]), "没有", Value::Null),
        (Some(List), json!(["父亲", "母亲", "祖母"]), "母亲，我的父亲、邻居", json!(["母亲", "父亲"])),
        (Some(List), json!(["父亲"]), "邻居", Value::Null),
        (None, json!(["", " "]), "any", Value::Null),
        (None, json!(["", " "]), "!", Value::Null),
    ];
    for (declared, choices, text, expected) in table {
        assert_eq!(filled(declared, &choices, text), expected, "{choices} from {text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn a_value_always_fits_its_type_or_is_null(
        text in "[一二三十百千万亿零点负两半年月日是不没有0-9０-９.,，、/:a-z \\-]{0,24}|\\PC{0,40}",
    ) {
        for declared in DeclaredType::ALL {
            let value = filled(Some(declared), &Value::Null, &text);
            proptest::prop_assert!(value.is_null() || declared.fits(&value), "{} from {:?}: {}", declared.name(), text, value);
        }
    }
}
