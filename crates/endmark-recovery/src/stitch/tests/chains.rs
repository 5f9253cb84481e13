//! Tests several consecutive continuations. A later one may resolve the ambiguity of an earlier one. If not,
//! the parts are rejected.

use endmark_text::Format::{self, Json, Jsonl, Text};

use crate::stitch::AskedFrom::{self, Cut, Unknown};
use crate::stitch::{Outcome, stitch};

fn join_parts(format: &Format, from: AskedFrom, parts: &[&str]) -> Option<String> {
    let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let stitched = stitch(&parts, format, from);
    (stitched.outcome == Outcome::Whole).then_some(stitched.text)
}

#[test]
fn the_next_part_resolves_an_uncertain_one() {
    let initial = "{\n  \"name\": \"write_file\",\n  \"content\": \"Of response small harbour returns what a harbour writes. \
                   Splits other writes";
    let rest = " without result as there sends field closes method to result garden station large there.\",\n  \
                \"overwrite\": true,\n  \"mode\": 689\n}";
    let all = [initial, rest].concat();
    let first = format!("Claro, aquí está el resto:\n\n…\n{}", &rest[..rest.find("verwrite").unwrap()]);
    assert_eq!(join_parts(&Json, Unknown, &[initial, &first, &all]).as_ref(), Some(&all));
    let initial =
        "{\"items\": [{\"id\": 1, \"late\": \"the harbour\"}, {\"id\": 2, \"late\": \"a small letter finds";
    let parts = [
        "…\n\\n\", \"one\": \"a bridge although simple\"}, {\"id\": 3, \"late\":",
        " \"quiet\", \"one\": \"i",
        "t is open\"}]}",
    ];
    let expected = [initial, &parts[0]["…\n".len()..], parts[1], parts[2]].concat();
    assert_eq!(join_parts(&Json, Cut, &[initial, parts[0], parts[1], parts[2]]), Some(expected));
}

#[test]
fn after_an_unrelated_part_the_text_continues_from_its_cut() {
    let initial = "{\"report\": \"The harbour was quiet and the";
    let rest = " ships lay at anchor until the morning.\", \"pages\": 3}";
    for other in [
        "I'm sorry, but I can't help with that request. Please tell me what else I can do.",
        "What would you like me to do next?",
    ] {
        for from in [Cut, Unknown] {
            assert_eq!(join_parts(&Json, from, &[initial, other, rest]), None, "{other}");
        }
    }
}

#[test]
fn the_next_part_does_not_reveal_a_lost_letter_of_a_string() {
    let initial = "{\"n\": 1, \"text\": \"# Package of the tests\"}\n{\"n\": 2, \"text\": \"# X";
    let first = "I am sorry, the response was cut short. Continuing from there:\n\n```jsonl\nXX These should not be \
                 documented or public.\"}\n{\"n\": 3, \"text\": \"#";
    let rest = "\"}\n{\"n\": 4, \"text\": \"# end of it\"}\n";
    assert_eq!(join_parts(&Jsonl, Unknown, &[initial, first, rest]), None);
}

#[test]
fn the_next_part_does_not_reveal_a_repeated_item() {
    let initial = "{\"id\": 1, \"open\": [true, false]}\n{\"id\": 2, \"open\": [4583998, \"gull\", true";
    let first =
        ",true], \"boat\": \"Heron\"}\n{\"id\": 3, \"open\": [false], \"boat\": \"Wave\"}\n{\"id\": 4, \"op";
    let rest = "en\": [], \"boat\": \"Two Brothers\"}\n";
    let text = join_parts(&Jsonl, Unknown, &[initial, first, rest]);
    assert!(text.as_ref().is_none_or(|text| *text == [initial, first, rest].concat()), "{text:?}");
}

#[test]
fn the_next_part_does_not_reveal_an_added_space_in_a_string() {
    let initial = "{\"path\": \"a.py\", \"content\": \"        self.assertEqual(optional(1,2), (1,2))\\n        with \
                   self.assertRaisesRegex(Type";
    let first = "Error, expected):\\n            optional(a=1,b=2)\\n\\n        self.assert";
    let rest = "Equal(defaults(), (1,2))\\n\", \"mode\": 342}";
    let answer = join_parts(&Json, Unknown, &[initial, first, rest]);
    let expected = [initial, first, rest].concat();
    assert!(answer.as_ref().is_none_or(|answer| *answer == expected), "{answer:?}");
}

#[test]
fn a_periodic_text_is_not_shortened_by_a_chain() {
    let zeros = "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\r\n".repeat(20);
    let initial = format!("{zeros}0, 0, 0, 0");
    let first = format!("{zeros}{zeros}0, 0, 0, ");
    let rest = format!("```rust\n0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\r\n{zeros}```");
    assert_eq!(join_parts(&Text, Unknown, &[&initial, &first, &rest]), None);
}

#[test]
fn words_around_a_part_are_removed_even_if_every_text_is_whole() {
    let initial = "The ships are late today. The harbour is quiet, and nobody has seen a sail since the";
    let first = " morning. Until the letter comes each of them waits, and the";
    let rest = "Продолжаю с того места, где остановился:\n\n next winter is long for all of the people in the town.\n";
    let expected = [initial, first, &rest[rest.find(" next").unwrap()..]].concat();
    assert_eq!(join_parts(&Text, Cut, &[initial, first, rest]), Some(expected));
}
