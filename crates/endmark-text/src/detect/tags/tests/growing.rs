//! Tests the verdicts on a text that grows piece by piece.

use super::*;

/// Describes the verdict: `whole`, or the settled length, the last balanced position, the last token, the
/// open elements, and the token at the cut.
fn describe_detection(text: &str) -> String {
    let Verdict::Truncated(cut) = judge(text) else { return judge(text).name().to_owned() };
    let in_token = cut.in_token.map_or("-", InToken::name);
    let (index, balanced) = (cut.truncation_index, cut.balanced_index);
    format!("{index} {balanced} {:?} {} {in_token}", cut.last_valid_token, open_tags(&cut))
}

#[track_caller]
fn check(pieces: &[(&str, &str)]) {
    let mut text = String::new();
    for (piece, expected) in pieces {
        text.push_str(piece);
        assert_eq!(describe_detection(&text), *expected, "{text:?}");
    }
}

#[test]
fn attributes_are_settled_up_to_the_last_certain_one() {
    check(&[
        ("Hi ", "3 0 \"Hi \"  -"),
        ("<", "3 0 \"Hi \"  tag"),
        ("a", "3 0 \"Hi \"  tag"),
        (" ", "6 0 \"<a \"  tag"),
        ("b", "6 0 \"<a \"  tag"),
        ("=", "8 0 \"<a b=\"  tag"),
        ("\"", "9 0 \"<a b=\\\"\"  attribute"),
        ("c > d", "14 0 \"<a b=\\\"c > d\"  attribute"),
        ("\"", "15 0 \"<a b=\\\"c > d\\\"\"  tag"),
        (" ", "16 0 \"<a b=\\\"c > d\\\" \"  tag"),
        ("e", "16 0 \"<a b=\\\"c > d\\\" \"  tag"),
        (" ", "18 0 \"<a b=\\\"c > d\\\" e \"  tag"),
        ("=", "19 0 \"<a b=\\\"c > d\\\" e =\"  tag"),
        (" ", "19 0 \"<a b=\\\"c > d\\\" e =\"  tag"),
        ("f", "21 0 \"<a b=\\\"c > d\\\" e = f\"  attribute"),
        ("/g", "23 0 \"<a b=\\\"c > d\\\" e = f/g\"  attribute"),
        (" ", "24 0 \"<a b=\\\"c > d\\\" e = f/g \"  tag"),
        ("h", "24 0 \"<a b=\\\"c > d\\\" e = f/g \"  tag"),
        ("/", "24 0 \"<a b=\\\"c > d\\\" e = f/g \"  tag"),
        (">", "whole"),
        (" ", "whole"),
        ("x", "whole"),
        ("<", "whole"),
        ("/", "whole"),
        ("b", "whole"),
        (" ", "whole"),
        (">", "whole"),
        ("\n", "whole"),
        ("y", "whole"),
    ]);
}

#[test]
fn a_self_closing_tag_opens_nothing() {
    check(&[
        ("<a", "0 0 \"<a\"  tag"),
        (">", "3 0 \"<a>\" <a> -"),
        ("1", "4 0 \"1\" <a> -"),
        ("<b", "4 0 \"1\" <a> tag"),
        ("/", "4 0 \"1\" <a> tag"),
        (" ", "8 0 \"<b/ \" <a> tag"),
        ("/", "8 0 \"<b/ \" <a> tag"),
        (">", "10 0 \"1<b/ />\" <a> -"),
        ("2", "11 0 \"1<b/ />2\" <a> -"),
        ("</a", "11 0 \"1<b/ />2\" <a> tag"),
        (">", "whole"),
        (" ", "whole"),
        ("3", "whole"),
        ("<c>", "whole"),
        ("\n ", "whole"),
        ("4", "whole"),
    ]);
}

#[test]
fn a_value_ends_at_its_quote_or_at_a_space() {
    check(&[
        ("<a", "0 0 \"<a\"  tag"),
        ("=", "3 0 \"<a=\"  tag"),
        ("b", "4 0 \"<a=b\"  attribute"),
        (">", "5 0 \"<a=b>\" <a> -"),
        ("<c", "5 0 \"<a=b>\" <a> tag"),
        (" d", "8 0 \"<c \" <a> tag"),
        ("=e/", "12 0 \"<c d=e/\" <a> attribute"),
        (">", "13 0 \"<c d=e/>\" <a> -"),
        ("<f g='", "19 0 \"<f g='\" <a> attribute"),
        ("\"", "20 0 \"<f g='\\\"\" <a> attribute"),
        ("'", "21 0 \"<f g='\\\"'\" <a> tag"),
        ("/", "21 0 \"<f g='\\\"'\" <a> tag"),
        (">", "23 0 \"<f g='\\\"'/>\" <a> -"),
    ]);
}

#[test]
fn quoted_attributes_need_no_space_between_them() {
    check(&[
        ("<a b", "3 0 \"<a \"  tag"),
        ("=\"c\"", "8 0 \"<a b=\\\"c\\\"\"  tag"),
        ("d", "8 0 \"<a b=\\\"c\\\"\"  tag"),
        ("=\"", "11 0 \"<a b=\\\"c\\\"d=\\\"\"  attribute"),
        ("\"", "12 0 \"<a b=\\\"c\\\"d=\\\"\\\"\"  tag"),
        ("@e", "12 0 \"<a b=\\\"c\\\"d=\\\"\\\"\"  tag"),
        (":f", "12 0 \"<a b=\\\"c\\\"d=\\\"\\\"\"  tag"),
        ("/", "12 0 \"<a b=\\\"c\\\"d=\\\"\\\"\"  tag"),
        ("g", "18 0 \"<a b=\\\"c\\\"d=\\\"\\\"@e:f/g\"  -"),
    ]);
}

#[test]
fn names_have_letters_digits_and_signs_but_no_final_colon() {
    check(&[
        ("<a><", "3 0 \"<a>\" <a> tag"),
        ("é", "3 0 \"<a>\" <a> tag"),
        (">", "7 0 \"<é>\" <a><é> -"),
        ("<_", "7 0 \"<é>\" <a><é> tag"),
        ("x1-.:y", "7 0 \"<é>\" <a><é> tag"),
        (">", "16 0 \"<_x1-.:y>\" <a><é><_x1-.:y> -"),
        ("<n:", "16 0 \"<_x1-.:y>\" <a><é><_x1-.:y> tag"),
        (">", "20 0 \"<n:>\" <a><é><_x1-.:y> -"),
        ("<m:", "20 0 \"<n:>\" <a><é><_x1-.:y> tag"),
        (" ", "24 0 \"<n:><m: \" <a><é><_x1-.:y> -"),
    ]);
}

#[test]
fn no_tag_begins_directly_after_a_word_or_a_code_sign() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("a", "4 0 \"a\" <x> -"),
        ("<b", "4 0 \"a\" <x> tag"),
        (">", "7 0 \"a<b>\" <x> -"),
        ("<", "7 0 \"a<b>\" <x> tag"),
        ("<", "8 0 \"a<b><\" <x> tag"),
        ("c", "10 0 \"a<b><<c\" <x> -"),
        (">", "11 0 \"a<b><<c>\" <x> -"),
        ("`", "12 0 \"a<b><<c>`\" <x> -"),
        ("<d", "14 0 \"a<b><<c>`<d\" <x> -"),
        (">", "15 0 \"a<b><<c>`<d>\" <x> -"),
        ("\\", "16 0 \"a<b><<c>`<d>\\\\\" <x> -"),
        ("<e", "18 0 \"a<b><<c>`<d>\\\\<e\" <x> -"),
        (">", "19 0 \"a<b><<c>`<d>\\\\<e>\" <x> -"),
        ("::", "21 0 \"a<b><<c>`<d>\\\\<e>::\" <x> -"),
        ("<f", "21 0 \"a<b><<c>`<d>\\\\<e>::\" <x> tag"),
        (">", "24 0 \"a<b><<c>`<d>\\\\<e>::<f>\" <x> -"),
        (":", "25 0 \"a<b><<c>`<d>\\\\<e>::<f>:\" <x> -"),
        ("<g", "25 0 \"a<b><<c>`<d>\\\\<e>::<f>:\" <x> tag"),
        (">", "28 0 \"<g>\" <x><g> -"),
        (")", "29 0 \")\" <x><g> -"),
        ("<h", "29 0 \")\" <x><g> tag"),
        (">", "32 0 \")<h>\" <x><g> -"),
        ("]", "33 0 \")<h>]\" <x><g> -"),
        ("<i", "33 0 \")<h>]\" <x><g> tag"),
        (">", "36 0 \")<h>]<i>\" <x><g> -"),
        ("_", "37 0 \")<h>]<i>_\" <x><g> -"),
        ("<j", "37 0 \")<h>]<i>_\" <x><g> tag"),
        (">", "40 0 \")<h>]<i>_<j>\" <x><g> -"),
        ("1", "41 0 \")<h>]<i>_<j>1\" <x><g> -"),
        ("<k", "41 0 \")<h>]<i>_<j>1\" <x><g> tag"),
        (">", "44 0 \")<h>]<i>_<j>1<k>\" <x><g> -"),
    ]);
}

#[test]
fn after_a_word_a_tag_needs_a_known_name_or_a_value() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("w", "4 0 \"w\" <x> -"),
        ("<em", "4 0 \"w\" <x> tag"),
        (">", "8 0 \"<em>\" <x><em> -"),
        ("w", "9 0 \"w\" <x><em> -"),
        ("<f g", "12 0 \"<f \" <x><em> tag"),
        (">", "14 0 \"w<f g>\" <x><em> -"),
        ("w", "15 0 \"w<f g>w\" <x><em> -"),
        ("<f g=h", "21 0 \"<f g=h\" <x><em> attribute"),
        (">", "22 0 \"<f g=h>\" <x><em><f> -"),
        ("w", "23 0 \"w\" <x><em><f> -"),
        ("</f", "23 0 \"w\" <x><em><f> tag"),
        (">", "27 0 \"</f>\" <x><em> -"),
        ("<nn mm", "31 0 \"<nn \" <x><em> tag"),
        (">", "34 0 \"<nn mm>\" <x><em> -"),
        ("<table border", "41 0 \"<table \" <x><em> tag"),
        (">", "48 0 \"<table border>\" <x><em><table> -"),
    ]);
}

#[test]
fn an_invalid_tag_is_text_and_another_tag_may_begin() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("<1", "5 0 \"<1\" <x> -"),
        ("<", "5 0 \"<1\" <x> tag"),
        ("/", "5 0 \"<1\" <x> tag"),
        ("1", "8 0 \"<1</1\" <x> -"),
        ("</a", "8 0 \"<1</1\" <x> tag"),
        ("=", "12 0 \"<1</1</a=\" <x> -"),
        ("</a", "12 0 \"<1</1</a=\" <x> tag"),
        ("/", "16 0 \"<1</1</a=</a/\" <x> -"),
        ("</b ", "20 0 \"</b \" <x> tag"),
        ("c", "21 0 \"<1</1</a=</a/</b c\" <x> -"),
        ("<d e", "24 0 \"<d \" <x> tag"),
        ("<f e=", "30 0 \"<f e=\" <x> tag"),
        (">", "31 0 \"<1</1</a=</a/</b c<d e<f e=>\" <x> -"),
        ("<d e=f", "37 0 \"<d e=f\" <x> attribute"),
        ("<", "37 0 \"<1</1</a=</a/</b c<d e<f e=><d e=f\" <x> tag"),
        ("<d e='", "44 0 \"<1</1</a=</a/</b c<d e<f e=><d e=f<<d e='\" <x> -"),
        ("<", "44 0 \"<1</1</a=</a/</b c<d e<f e=><d e=f<<d e='\" <x> tag"),
        ("'", "46 0 \"<1</1</a=</a/</b c<d e<f e=><d e=f<<d e='<'\" <x> -"),
        ("<", "46 0 \"<1</1</a=</a/</b c<d e<f e=><d e=f<<d e='<'\" <x> tag"),
    ]);
}

#[test]
fn outside_elements_only_a_cut_tag_makes_the_text_truncated() {
    check(&[
        ("<x/>", "whole"),
        ("a", "whole"),
        ("<", "whole"),
        (" ", "whole"),
        ("a ", "whole"),
        ("<", "9 4 \"a< a \"  tag"),
        ("b ", "12 4 \"<b \"  tag"),
        ("<", "12 4 \"a< a <b \"  tag"),
        ("/", "whole"),
        ("q", "whole"),
        (" ", "whole"),
        ("<", "16 4 \"a< a <b </q \"  tag"),
        ("b", "16 4 \"a< a <b </q \"  tag"),
        (" ", "19 4 \"<b \"  tag"),
        ("c", "19 4 \"<b \"  tag"),
        ("<", "whole"),
        ("d=", "whole"),
        ("e", "24 4 \"<d=e\"  attribute"),
    ]);
}

#[test]
fn a_bracket_after_a_backslash_or_backtick_is_text() {
    check(&[
        ("<x/>", "whole"),
        ("`", "whole"),
        ("<", "whole"),
        ("b", "whole"),
        (" \\", "whole"),
        ("<", "whole"),
        ("c", "whole"),
        ("<", "whole"),
        ("<", "whole"),
        ("d", "whole"),
        ("a<", "whole"),
        ("é", "whole"),
    ]);
}

#[test]
fn comments_sections_and_instructions_contain_anything() {
    check(&[
        ("<a>", "3 0 \"<a>\" <a> -"),
        ("<!", "3 0 \"<a>\" <a> tag"),
        ("-", "3 0 \"<a>\" <a> tag"),
        ("-", "7 0 \"<!--\" <a><!-- comment"),
        (" c -", "11 0 \"<!-- c -\" <a><!-- comment"),
        ("-", "12 0 \"<!-- c --\" <a><!-- comment"),
        (" -", "14 0 \"<!-- c -- -\" <a><!-- comment"),
        ("-", "15 0 \"<!-- c -- --\" <a><!-- comment"),
        ("-", "16 0 \"<!-- c -- ---\" <a><!-- comment"),
        (">", "17 0 \"<!-- c -- --->\" <a> -"),
        ("<![CD", "17 0 \"<!-- c -- --->\" <a> tag"),
        ("ATA[", "26 0 \"<![CDATA[\" <a><![CDATA[ cdata"),
        ("x]", "28 0 \"<![CDATA[x]\" <a><![CDATA[ cdata"),
        ("]", "29 0 \"<![CDATA[x]]\" <a><![CDATA[ cdata"),
        ("]", "30 0 \"<![CDATA[x]]]\" <a><![CDATA[ cdata"),
        (">", "31 0 \"<![CDATA[x]]]>\" <a> -"),
        ("<?", "31 0 \"<![CDATA[x]]]>\" <a> tag"),
        ("xm", "31 0 \"<![CDATA[x]]]>\" <a> tag"),
        ("l", "36 0 \"<?xml\" <a><? instruction"),
        (" v?", "39 0 \"<?xml v?\" <a><? instruction"),
        ("x?", "41 0 \"<?xml v?x?\" <a><? instruction"),
        (">", "42 0 \"<?xml v?x?>\" <a> -"),
    ]);
}

#[test]
fn a_document_type_contains_declarations_in_brackets() {
    check(&[
        ("<!", "0 0 \"<!\"  tag"),
        ("DOC", "0 0 \"<!DOC\"  tag"),
        ("TYPE", "0 0 \"<!DOCTYPE\"  tag"),
        (" ", "10 0 \"<!DOCTYPE \" <! declaration"),
        ("x [", "13 0 \"<!DOCTYPE x [\" <! declaration"),
        ("<!E", "16 0 \"<!DOCTYPE x [<!E\" <! declaration"),
        (">", "17 0 \"<!DOCTYPE x [<!E>\" <! declaration"),
        ("[", "18 0 \"<!DOCTYPE x [<!E>[\" <! declaration"),
        ("]", "19 0 \"<!DOCTYPE x [<!E>[]\" <! declaration"),
        ("]", "20 0 \"<!DOCTYPE x [<!E>[]]\" <! declaration"),
        (">", "whole"),
        ("\n", "whole"),
        ("<x/>", "whole"),
    ]);
}

#[test]
fn only_known_declarations_and_instructions_are_markup() {
    check(&[
        ("<x/>", "whole"),
        ("<!", "4 4 \"<x/>\"  tag"),
        ("[", "4 4 \"<x/>\"  tag"),
        ("x", "whole"),
        ("<!", "whole"),
        ("-x", "whole"),
        ("<!", "whole"),
        ("ELEMENT", "whole"),
        (">", "whole"),
        ("<!", "22 4 \"<![x<!-x<!ELEMENT>\"  tag"),
        ("entity\n", "31 4 \"<!entity\\n\" <! declaration"),
        ("x", "32 4 \"<!entity\\nx\" <! declaration"),
        (">", "whole"),
        ("<?", "33 33 \"<!entity\\nx>\"  tag"),
        ("x", "33 33 \"<!entity\\nx>\"  tag"),
        ("y", "whole"),
        ("<?", "whole"),
        (" ", "whole"),
        ("<?xml", "45 33 \"<?xml\" <? instruction"),
        (">", "46 33 \"<?xml>\" <? instruction"),
    ]);
}

#[test]
fn an_end_tag_closes_the_innermost_element_of_its_name() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("<b>", "6 0 \"<b>\" <x><b> -"),
        ("1", "7 0 \"1\" <x><b> -"),
        ("</b>", "11 0 \"</b>\" <x> -"),
        ("2", "12 0 \"2\" <x> -"),
        ("</b>", "16 0 \"2</b>\" <x> -"),
        ("3", "17 0 \"2</b>3\" <x> -"),
        ("<B>", "20 0 \"2</b>3<B>\" <x> -"),
        ("</b >", "25 0 \"2</b>3<B></b >\" <x> -"),
        ("<c>", "28 0 \"<c>\" <x><c> -"),
        ("<d>", "31 0 \"<d>\" <x><c><d> -"),
        ("</c>", "35 0 \"</c>\" <x> -"),
        ("</d>", "39 0 \"</d>\" <x> -"),
        ("</X>", "whole"),
        ("</x>", "whole"),
    ]);
}

#[test]
fn a_script_contains_text_up_to_its_end_tag() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("<script>", "11 0 \"<script>\" <x><script> -"),
        ("if (a<b) {", "21 0 \"if (a<b) {\" <x><script> -"),
        ("\"<div>\"", "28 0 \"if (a<b) {\\\"<div>\\\"\" <x><script> -"),
        ("</div>", "34 0 \"if (a<b) {\\\"<div>\\\"</div>\" <x><script> -"),
        ("</x>", "38 0 \"if (a<b) {\\\"<div>\\\"</div></x>\" <x><script> -"),
        ("<!--", "42 0 \"if (a<b) {\\\"<div>\\\"</div></x><!--\" <x><script> -"),
        ("<?xml ", "48 0 \"if (a<b) {\\\"<div>\\\"</div></x><!--<?xml \" <x><script> -"),
        ("<", "48 0 \"if (a<b) {\\\"<div>\\\"</div></x><!--<?xml \" <x><script> tag"),
        ("/script", "48 0 \"if (a<b) {\\\"<div>\\\"</div></x><!--<?xml \" <x><script> tag"),
        (">", "57 0 \"</script>\" <x> -"),
        ("<p>", "60 0 \"<p>\" <x><p> -"),
    ]);
}

#[test]
fn a_style_contains_text_and_an_empty_script_nothing() {
    check(&[
        ("<x>", "3 0 \"<x>\" <x> -"),
        ("<style q>", "12 0 \"<style q>\" <x><style> -"),
        ("</x>", "16 0 \"</x>\" <x><style> -"),
        ("</style>", "24 0 \"</style>\" <x> -"),
        ("</x>", "whole"),
        ("<script", "28 28 \"</x>\"  tag"),
        ("/", "28 28 \"</x>\"  tag"),
        (">", "whole"),
        ("<b>", "40 37 \"<b>\" <b> -"),
    ]);
}
