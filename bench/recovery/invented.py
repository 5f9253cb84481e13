"""Invents text: words, prose, code and rows in many scripts that resemble what models write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from chance import Chance

ENGLISH = """
the a of and to in is that for it as with on by this are from or an be at which not can has was will all one their
when there use each other time value name list file data state error result request response message server client
token budget session handler parser stream buffer record field index count total limit default option config module
function method returns reads writes opens closes keeps finds builds checks joins splits sends waits starts stops
first last next empty whole cut long short small large quick quiet early late simple common careful possible known
before after between during without because however therefore although unless until harbour lantern morning window
river mountain engine market letter garden station bridge winter summer paper kitchen travel answer question reason
""".split()
OTHER_SCRIPTS = {
    "german": "der die das und nicht über Größe Straße wächst später Schlüssel Übergabe gleichmäßig möglich für Wörter".split(),
    "french": "le la élève été déjà où garçon cœur naïve après façon être à même goût février possible".split(),
    "spanish": "el niño mañana corazón también árbol qué está señal último código función año".split(),
    "russian": "и в не на что свет окно город письмо утром ответ причина дорога зима человек время".split(),
    "greek": "και το είναι νύχτα φως θάλασσα πόλη γράμμα απάντηση".split(),
    "chinese": "我们 数据 文件 结果 如果 因此 可以 时间 系统 请求 响应 错误 长度 开始 结束 早上 安静".split(),
    "japanese": "これは データ です。 ファイル の 長さ を 確認 します。 結果 が ない 場合 朝 静か".split(),
    "korean": "그리고 데이터 파일 결과 아침 조용한 시간 시스템 요청 응답 오류".split(),
    "arabic": "هذا هو الملف و البيانات النتيجة الوقت الصباح هادئ".split(),
}
EMOJI = ["🙂", "🚀", "✅", "🧪", "👩‍👩‍👧", "🇫🇷", "🏽", "😀", "🔧", "📦", "é", "ñ", "a̐", "ö̲", "𝒳", "𠮷"]
FLAVOURS = {"ascii": 5.0, "accents": 1.5, "scripts": 1.5, "emoji": 1.5}


def word(chance: Chance, flavour: str) -> str:
    """Returns one word. Flavours other than `ascii` mix in other scripts, emoji and combining marks."""
    if flavour == "ascii" or chance.maybe(0.6):
        return chance.pick(ENGLISH)
    if flavour == "emoji":
        return chance.pick(EMOJI)
    languages = ("german", "french", "spanish") if flavour == "accents" else tuple(OTHER_SCRIPTS)
    return chance.pick(OTHER_SCRIPTS[chance.pick(languages)])


def sentence(chance: Chance, flavour: str) -> str:
    """Returns a sentence of four to eighteen words with a full stop."""
    words = [word(chance, flavour) for _ in range(chance.between(4, 18))]
    if chance.maybe(0.3):
        words[len(words) // 2] += ","
    text = " ".join(words)
    return text[0].upper() + text[1:] + chance.pick([".", ".", ".", ".", "!", "?", ":"])


def paragraph(chance: Chance, flavour: str) -> str:
    """Returns a few sentences on one line."""
    return " ".join(sentence(chance, flavour) for _ in range(chance.between(2, 7)))


def identifier(chance: Chance, joiner: str = "_") -> str:
    """Returns a name of one to three words."""
    words = [chance.pick(ENGLISH) for _ in range(chance.between(1, 3))]
    if joiner:
        return joiner.join(words)
    return words[0] + "".join(part.capitalize() for part in words[1:])


def gathered(size: int, pieces: Iterator[str], joiner: str) -> str:
    """Returns pieces that together have at least `size` characters."""
    parts: list[str] = []
    length = 0
    while length < size:
        piece = next(pieces)
        parts.append(piece)
        length += len(piece) + len(joiner)
    return joiner.join(parts)


def prose(chance: Chance, size: int, flavour: str) -> str:
    """Returns paragraphs with blank lines between them."""
    return gathered(size, (paragraph(chance, flavour) for _ in count()), "\n\n")


def _expression(chance: Chance, flavour: str) -> str:
    name = identifier(chance)
    return chance.pick([
        f"{name}({identifier(chance)}, {chance.below(1000)})",
        f'"{sentence(chance, flavour)}"',
        f"{name}[{chance.below(90)}]",
        f"{chance.below(100000)}",
        f"{name}.{identifier(chance)}",
        f"{name} + {identifier(chance)}",
        f"'{word(chance, flavour)}\\n'",
    ])


def _python(chance: Chance, flavour: str) -> str:
    lines = [f"def {identifier(chance)}({identifier(chance)}, {identifier(chance)}={chance.below(50)}):"]
    if chance.maybe(0.5):
        lines.append(f'    """{sentence(chance, flavour)}"""')
    for _ in range(chance.between(1, 7)):
        target, expression = identifier(chance), _expression(chance, flavour)
        lines += chance.pick([
            [f"    {target} = {expression}"],
            [f"    if {target} is None:", f"        return {expression}"],
            [f"    for {target} in {expression}:", f"        if {identifier(chance)}:", f"            yield {target}"],
            [f"    # {sentence(chance, flavour)}", f"    print({expression})"],
        ])
    return "\n".join([*lines, f"    return {identifier(chance)}", ""])


def _rust(chance: Chance, flavour: str) -> str:
    lines = [f"/// {sentence(chance, flavour)}", f"fn {identifier(chance)}({identifier(chance)}: &str) -> usize {{"]
    for _ in range(chance.between(1, 7)):
        name, expression = identifier(chance), _expression(chance, flavour)
        lines += chance.pick([
            [f"    let {name} = {expression};"],
            [f"    if {name}.is_empty() {{", f"        return {chance.below(99)};", "    }"],
            [f"    while let Some({name}) = {identifier(chance)}.next() {{", f"        {name}.push('\\t');", "    }"],
            [f"    // {sentence(chance, flavour)}"],
        ])
    return "\n".join([*lines, f"    {chance.below(10)}", "}", ""])


def _javascript(chance: Chance, flavour: str) -> str:
    lines = [f"export async function {identifier(chance, '')}({{ {identifier(chance, '')}, id }}) {{"]
    for _ in range(chance.between(1, 7)):
        name, expression = identifier(chance, ""), _expression(chance, flavour)
        lines += chance.pick([
            [f"\tconst {name} = {expression};"],
            [f"\tif (!{name}) {{", f"\t\tthrow new Error(`{word(chance, flavour)} ${{id}}`);", "\t}"],
            [f"\tawait {name}.map((row) => ({{ ...row, {identifier(chance, '')}: {chance.below(9)} }}));"],
        ])
    return "\n".join([*lines, f"\treturn {{ {identifier(chance, '')} }};", "}", ""])


LANGUAGES: dict[str, Callable[[Chance, str], str]] = {"python": _python, "rust": _rust, "javascript": _javascript}


def code(chance: Chance, size: int, flavour: str, language: str) -> str:
    """Returns functions in one language. No two of them are exactly alike."""
    write = LANGUAGES[language]
    return gathered(size, (write(chance, flavour) for _ in count()), "\n")


def repetitive(chance: Chance, size: int) -> str:
    """Returns text that repeats itself: zeros, equal rows, a table, indentation, or nearly equal lines."""
    name = identifier(chance)
    form = chance.below(6)
    if form == 0:
        line: Callable[[int], str] = lambda _: ", ".join(["0"] * 16) + ","
    elif form == 1:
        line = lambda _: f"| {name} | 0 | ok |"
    elif form == 2:
        line = lambda number: f"    assert {name}({number % 7}) == 0"
    elif form == 3:
        line = lambda number: "    " * (number % 9) + "}"
    elif form == 4:
        line = lambda number: f"INSERT INTO {name} VALUES ({number}, '', NULL);"
    else:
        line = lambda _: "-" * 40
    return gathered(size, (line(number) for number in count()), "\n")

