"""Inputs whose size is a parameter: deep, wide, one long line, many short lines, repeated characters, repeated phrases."""

RESULT = "===AGENT_RESULT===\nagent_id: a\ndimensions: b\n"
# After the prefix, the unit is repeated up to the wanted size. `{i}` is the number of the repetition.
# name: (prefix, unit)
JSON = {
    "deep arrays": ('{"a":', "["),
    "deep objects": ("", '{"a":'),
    "deep mixed": ("", '[{"key":'),
    "wide empty arrays": ('{"rows":[', "[],"),
    "wide one-letter strings": ('{"rows":[', '"a",'),
    "wide numbers": ("[", "{i},"),
    "wide zeros": ("[", "0,"),
    "wide rows": ('{"rows":[', '{"name":"row {i}","size":{i}},'),
    "wide keys": ("{", '"k{i}":1,'),
    "commas and spaces": ('{"a":[1', " "),
    "line breaks": ('{"a":[1,', "\n"),
    "string of one letter": ('{"a":"', "a"),
    "string of words": ('{"a":"', "some words "),
    "string of spaces": ('{"a":"', " "),
    "string of escapes": ('{"a":"', "\\n"),
    "string of backslashes": ('{"a":"', "\\\\"),
    "string of code points": ('{"a":"', "\\u00e9"),
    "string of quotes": ('{"a":"', '\\"'),
    "string of brackets": ('{"a":"', "["),
    "long number": ('{"a":', "1"),
    "json lines": ("", '{"a":1}\n'),
    "json lines of arrays": ("", "[]\n"),
    "one deep row in json lines": ('{"a":1}\n{"a":', "["),
}

CHARACTERS = {f"repeated {unit!r}": ("", unit) for unit in "a \n\t*_`~>#-+=|<&[]()!\\:.,'\"0é漢🙂\u0301\r{"}

PHRASES = {
    "words": ("", "some words, and more of them. "),
    "distinct words": ("", "word{i} "),
    "sentences on lines": ("", "This is a sentence.\n"),
    "paragraphs": ("", "A paragraph of its own.\n\n"),
    "list items": ("", "- item {i}\n"),
    "numbered items": ("", "{i}. item\n"),
    "headings": ("", "# Heading {i}\n"),
    "one heading again": ("", "## Same\n"),
    "table rows": ("| a | b |\n|---|---|\n", "| cell {i} | b |\n"),
    "one wide row": ("| a | b |\n|---|---|\n", "| a "),
    "quotes in quotes": ("", "> "),
    "lists in lists": ("", "- "),
    "fences": ("", "```\ncode\n```\n"),
    "fences in pairs": ("", "```"),
    "long fence of code": ("```rust\n", "let x = {i};\n"),
    "code spans": ("", "`a` "),
    "growing code spans": ("", "`a``b"),
    "emphasis": ("", "*a **b "),
    "closed emphasis": ("", "**a** "),
    "links": ("", "[a](b) "),
    "open links": ("", "[a]("),
    "open link texts": ("", "[a "),
    "images": ("", "![a"),
    "reference definitions": ("", "[a{i}]: b\n"),
    "references": ("", "[a][b] "),
    "entities": ("", "&amp;"),
    "autolinks": ("", "<http://a"),
    "opening tags": ("", "<a>"),
    "distinct tags": ("", "<a{i}>"),
    "tags on lines": ("", "<item>\n"),
    "closed tags": ("<r>", "<a></a>"),
    "closing tags": ("<r>", "</a>"),
    "attributes": ("<a ", 'b="c" '),
    "long tag name": ("<", "a"),
    "half tags": ("<r>", "<a "),
    "comments": ("<r>", "<!-- a"),
    "cdata": ("<r>", "<![CDATA["),
    "html blocks": ("", "<div>\n"),
    "thematic breaks": ("", "---\n"),
    "indented": ("", "    code\n"),
    "dots of omission": ("", "… "),
    "open placeholders": ("", "[" + "TO" + "DO"),
    "placeholders": ("", "[insert {i} here] "),
    "template braces": ("", "{{a "),
    "forbidden phrases": ("", "TO" + "DO: implement this. "),
    "forbidden phrases on lines": ("", "TO" + "DO: implement this.\n"),
    "rest left out": ("", "// ... rest of the code remains the same\n"),
    "rest left out on one line": ("", "the rest is omitted for brevity. "),
    "error lines": ("", "ERROR: failed at {i}\n"),
    "the same error": ("", "error: failed\n"),
    "csv lines": ("a,b,c\n", "1,{i},3\n"),
    "one csv line": ("a,b,c\n", "a,"),
    "open csv quotes": ("a,b\n", '"a\n'),
    "diff": ("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n", "+line {i}\n"),
    "diff files": ("", "diff --git a/f{i} b/f{i}\n--- a/f{i}\n+++ b/f{i}\n@@ -1 +1 @@\n-a\n+b\n"),
    "hunks": ("--- a/f\n+++ b/f\n", "@@ -{i} +{i} @@\n-a\n+b\n"),
    "front matter": ("---\n", "a{i}: b\n"),
    "carriage returns": ("", "progress 10%\r"),
    "escape sequences": ("", "\x1b[31mred\x1b[0m "),
    "yaml": ("", "key{i}:\n  - a\n"),
    "paths": ("", "/a/b/c{i}.rs:1 "),
    "path segments": ("", "/a"),
    "addresses": ("", "https://a.example/{i} "),
    "hashes": ("", "0123456789abcdef0123456789abcdef01234567 "),
    "long hash": ("", "0f"),
    "letters and digits": ("", "a1"),
    "camel case": ("", "aB"),
    "dotted name": ("", "a."),
    "an answer about the cut": ("", "Continue from the last valid token. "),
    "no spaces": ("", "文字を続ける。"),
    "results of agents": ("", "===AGENT_RESULT===\nagent_id: a{i}\ndeclared_findings: 0\n===AGENT_RESULT_END===\n"),
    "fields of a result": (RESULT, "field{i}: v\n"),
    "findings": (RESULT, "[F{i}] broken\nseverity: High\ncwe: CWE-89\nlocation: src/a{i}.rs:1-2\nevidence:\n  code\n\n"),
    "findings in one place": (RESULT, "[F{i}] broken\nseverity: High\ncwe: CWE-89\nlocation: src/a.rs:1-2\n\n"),
    "findings as lines of JSON": (RESULT, '{"id": "F{i}", "title": "a", "severity": "High", "location": "src/a{i}.rs:1"}\n'),
    "heads of findings": (RESULT, "[F{i}] a\n"),
    "evidence": (RESULT + "[F1] broken\nevidence:\n", "  line {i}\n"),
    "flow": (RESULT + "[F1] broken\nflow: a", " -> a"),
    "open results": ("", "===AGENT_RESULT===\n"),
    "checkpoints": ("", "[CHECKPOINT] turn:{i} findings:1 files_read:2 remaining_dims:a,b\n"),
}

TEXTS = CHARACTERS | PHRASES
ALL = JSON | TEXTS


def grown(shape, size):
    """Returns about `size` bytes of this shape."""
    prefix, unit = ALL[shape]
    if "{i}" not in unit:
        return (prefix + unit * max(1, size // len(unit.encode()))).encode()
    parts, length, i = [prefix], 0, 0
    while length < size:
        parts.append(unit.replace("{i}", str(i)))
        length, i = length + len(parts[-1]), i + 1
    return "".join(parts).encode()
