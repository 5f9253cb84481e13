//! Tests what the form of a text reveals about a seam: rows, items, elements, blocks and lines.

use endmark_text::Format::{self, Markdown, Tags, Text};

use crate::stitch::AskedFrom::{self, Cut, Token, Unknown};
use crate::stitch::merge_chunks;

fn join(format: &Format, from: AskedFrom, initial: &str, continuation: &str) -> Option<String> {
    merge_chunks(initial, continuation, format, from).ok().map(|merged| merged.text)
}

/// Checks that the text is joined as intended or not at all.
fn is_never_wrong(format: &Format, from: AskedFrom, initial: &str, (ahead, rest): (&str, &str)) {
    let text = join(format, from, initial, &[ahead, rest].concat());
    assert!(text.as_ref().is_none_or(|text| *text == [initial, rest].concat()), "{text:?}");
}

const ITEMS: &str = "# Harbour\n\n- Tickets are sold on board.\n- Bicycles travel free before ten.\n";
const MORE_ITEMS: &str =
    "- Dogs need a lead, and a ticket at weekends.\n\n## Winter\n\nThe last boat leaves at six.\n";

#[test]
fn a_foreign_line_does_not_separate_two_items() {
    is_never_wrong(&Markdown, Cut, ITEMS, ("Okay!\n\n", MORE_ITEMS));
}

const ROWS: &str = "| Ferry | First | Last | Price |\n| --- | --- | --- | --- |\n| Gull | 06:10 | 22:40 | 3.20 |\n\
    | Tern | 07:00 | 21:15 | 2.80 |\n| Petrel | 08:30 | 19:45 | ";
const MORE_ROWS: &str = "4.10 |\n| Skua | 09:00 | 18:30 | 5.00 |\n\nTickets are sold on board.\n";

#[test]
fn a_row_does_not_end_before_its_last_cell() {
    is_never_wrong(&Markdown, Cut, ROWS, ("Okay!\n", MORE_ROWS));
}

const BOOKS: &str = "<catalog>\n  <book>\n    <title>The Tide Tables</title>\n    <author>M. Rowan</author>\n  </book>\n  \
    <book>\n    <title>Ebb and Flow</title>\n    <author>";
const MORE_BOOKS: &str = "C. Arnaud</author>\n  </book>\n  <book>\n    <title>Nets</title>\n    \
    <author>H. Sand</author>\n  </book>\n</catalog>\n";

#[test]
fn single_line_elements_stay_on_one_line() {
    for ahead in ["Here is the remainder of the file:\n\n", "Okay!\n", "Okay!\n\n"] {
        is_never_wrong(&Tags, Unknown, BOOKS, (ahead, MORE_BOOKS));
        is_never_wrong(&Tags, Cut, BOOKS, (ahead, MORE_BOOKS));
        is_never_wrong(&Tags, Cut, &[BOOKS, "C. "].concat(), (ahead, &MORE_BOOKS[3..]));
    }
}

#[test]
fn a_colon_at_the_end_of_a_code_line_announces_no_block() {
    let initial = "import zipfile\n\nname = 'boats'\nprint(f'Opening {name} as a zipfile.')\n\
        with zipfile.ZipFile(name, mode='r') as boats:\n";
    let rest = "  for boat in boats.infolist():\n    data = boats.read(boat)\n    break  # Only the first.\n";
    let remark = "These settings say how the text is read. The rest of it would be of the same kind.";
    let wrapped = format!("```rust\n{rest}```\n\n{remark}");
    let text = join(&Text, Cut, initial, &wrapped);
    assert!(text.as_ref().is_none_or(|text| !text.contains("```")), "{text:?}");
    assert_eq!(join(&Text, Unknown, initial, &wrapped), Some([initial, rest.trim_end()].concat()));
}

#[test]
fn an_opening_fence_of_the_text_is_closed_by_its_last_fence() {
    let initial = "# Local imports\nfrom .. import base\n\n\nclass Fix(base.BaseFix):\n    ";
    let rest = "compatible = True\n    pattern = \"\"\"\n    power< any+ trailer< '.' 'reads' > >\n    \"\"\"\n\n    \
        def transform(self, node, results):\n        node.replace([x.clone() for x in results[\"call\"]])\n";
    let wrapped = format!("```rust\n{rest}```\n\nSag Bescheid, wenn du noch etwas brauchst!");
    assert_eq!(join(&Text, Unknown, initial, &wrapped), Some([initial, rest.trim_end()].concat()));
    // If the cut was requested, the whitespace before the fence is uncertain.
    let text = join(&Text, Cut, initial, &wrapped);
    assert!(text.as_ref().is_none_or(|text| *text == [initial, rest.trim_end()].concat()), "{text:?}");
}

#[test]
fn a_block_does_not_begin_with_another_block() {
    let initial = "# Tests\n\n* Long when the field is all morning data:\n\n```python\n";
    let rest = "        self.assertNotIn('length', [k.lower() for k in headers])\n        \
        self.assertEqual(headers['Encoding'], 'gzip')\n```\n";
    is_never_wrong(&Markdown, Cut, initial, ("````text\n", rest));
}

#[test]
fn never_repeated_lines_do_not_repeat_at_the_cut() {
    let row = |number: usize| format!("INSERT INTO boats VALUES ({number}, '', NULL);\n");
    let rows = |from: usize, to: usize| (from..to).map(row).collect::<String>();
    is_never_wrong(&Text, Cut, &rows(1, 6), (&row(5), &rows(6, 9)));
    let twice = [rows(1, 3), row(2), rows(3, 5), row(4), rows(5, 6)].concat();
    let expected = Some([twice.as_str(), &row(5), &rows(6, 9)].concat());
    assert_eq!(join(&Text, Cut, &twice, &[row(5), rows(6, 9)].concat()), expected);
}

#[test]
fn a_text_does_not_end_with_a_colon_or_an_open_bracket() {
    assert_eq!(join(&Text, Cut, "There are three boats:", "\n"), None);
    assert_eq!(join(&Text, Cut, "for _ in 0..200 {\n    let log = self", "\n"), None);
    assert!(join(&Text, Cut, "There are three boats.", "\n").is_some());
}

#[test]
fn a_nearly_equal_first_line_is_another_version() {
    let initial = "# Counting boats before the limit of the harbour budget\n\n```python\n        equal(get('1.0'), 'hello')";
    let other = "# Counting boats before the limit of the harbour morning\n\n```python\n        equal(get('1.0'), 'hello')\n        \
        equal(get('2.0'), 'there')\n```\n\nThat is how boats are counted.\n";
    assert_eq!(join(&Markdown, Unknown, initial, other), None);
}

#[test]
fn spacing_before_exclamation_marks_is_consistent() {
    let initial = "The gulls had not yet found the boats that came in so late from the name long";
    let rest = "! Be with the boats at one and wait for the late tide. The harbour lay quiet.\n";
    is_never_wrong(&Text, Unknown, initial, ("D'accord, je reprends :\n\n... ", rest));
}

#[test]
fn indentation_after_a_line_break_is_kept() {
    let initial = "def test_side(self):\n    self.assert_end(['>>>'])\n    self.assert_end(['>>>', None])\n    \
        self.assert_end(['...', '>>>'])\n    self.assert_end(";
    let rest = "\n        ['>>>', '...', '...', None, '>>>']\n    )\n\ndef test_long(self):\n    self.assert_end(['>>>'])\n";
    is_never_wrong(&Text, Token, initial, ("Sorry, my answer was cut off. Continuing:\n\n", rest));
}

#[test]
fn no_heading_list_or_table_begins_in_mid_line() {
    let initial = "The harbour was quiet in the morning. The boats came back with the tide, and the men unloaded what they had";
    for block in [
        "# Summary\n\nThe harbour is a place of work, and it wakes early.\n",
        "- **Boats**: they came back\n- **Men**: they unloaded\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
    ] {
        for format in [Text, Markdown] {
            for from in [Cut, Token, Unknown] {
                assert_eq!(join(&format, from, initial, block), None, "{from:?} {block}");
            }
        }
    }
}
