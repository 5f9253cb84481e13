use super::{failed_checks, names};

#[test]
fn handoffs_are_found_in_many_wordings_and_languages() {
    for text in [
        "To be continued.",
        "*(to be continued in the next message)*",
        "I will continue this analysis in the next session.",
        "Continuing in next session…",
        "The remaining sections will be covered in a follow-up.",
        "I'll add the remaining tests later.",
        "I've started the requirements and will expand on them.",
        "I've written the first three sections and will complete the others.",
        "I will stop here for now.",
        "I will write the detailed design in a follow-up.",
        "I will fill this in once the tests pass.",
        "Now let me write the risks section.",
        "...and so on for the other modules.",
        "The remaining endpoints follow the same pattern and are not listed here.",
        "Would you like me to continue with the remaining modules?",
        "Let me know if you'd like me to proceed with the rest.",
        "Due to length constraints, only the first two modules are described.",
        "The rest of the work is left for the next agent.",
        "I'm running out of context, so the list stops here.",
        "Reply \"continue\" and I will go on.",
        "Fortsetzung folgt.",
        "Ich werde die Analyse in der nächsten Sitzung fortsetzen.",
        "Die restlichen Abschnitte folgen später.",
        "Die restlichen Abschnitte werden noch ergänzt.",
        "À suivre.",
        "Je terminerai l'analyse dans la prochaine session.",
        "Continuará.",
        "Continuaré con el resto en la próxima sesión.",
        "Vou continuar na próxima mensagem.",
        "Continuerò l'analisi nella prossima sessione.",
        "Wordt vervolgd.",
        "Ciąg dalszy nastąpi.",
        "Продолжение следует.",
        "Остальные разделы будут добавлены позже.",
        "未完待续",
        "由于篇幅限制，只列出前两个模块。",
        "剩余部分将在下一条消息中继续。",
        "残りは次回のセッションで対応します。",
        "나머지 내용은 다음 답변에서 계속하겠습니다.",
    ] {
        let document = format!("# Report\n\nThe parser is done, and all of its tests pass.\n\n{text}\n");
        assert_eq!(names(&document), ["handoff"], "{text}");
    }
}

#[test]
fn sentences_about_handoffs_are_not_handoffs() {
    for text in [
        "The guard flags phrases such as to be continued.",
        "An agent must not write that it will continue in the next session.",
        "He wrote “to be continued” at the end.",
        "The string \"continuing in next session\" is a handoff.",
        "Say `to be continued` and it stops.",
        "> To be continued.",
        "```text\nTo be continued.\n```",
        "The loop continues until the next message arrives.",
        "The session is continued when the token is refreshed.",
        "The rest of the options are described below.",
        "Nothing was left for the next session.",
        "Der Rest der Parameter ist optional.",
        "Der Rest der Datei wird beim nächsten Start gelesen.",
        "I have started the server with `--debug` and will expand the log window when it fails.",
        "Should I continue after an error? Yes: the next run picks up where the last one stopped.",
        "Shall I proceed? is what the agent asks before it deletes files.",
        "其余参数是可选的。",
        "We leave the default at ten.",
        "I stop the service here and start it again.",
        "We could add this option later, but we would end up with two of them.",
        "The needed information will be provided by\nthe storage layer.",
        "The remaining steps are skipped if the first one fails.",
        "Division (truncated) and remainder (or truncated modulo) are operators.",
    ] {
        let document = format!(
            "# Report\n\nThe parser is done, and all of its tests pass.\n\n{text}\n\nThat is all there is.\n"
        );
        assert_eq!(failed_checks(&document), [], "{text}");
    }
}

#[test]
fn placeholders_are_found_instead_of_content() {
    for (text, quote) in [
        ("TBD", "TBD"),
        ("- Owner: TBD", "TBD"),
        ("| a | b |\n|---|---|\n| x | WIP |", "WIP"),
        ("**TBD: write this section**", "TBD: write this section"),
        ("To be added.", "To be added."),
        ("*Coming soon*", "Coming soon"),
        ("[Insert the summary here]", "[Insert the summary here]"),
        ("The client is [Company Name] from Bern.", "[Company Name]"),
        ("Lorem ipsum dolor sit amet, consectetur.", "Lorem ipsum dolor sit amet, consectetur."),
        ("This section will be completed later.", "This section will be completed later."),
        ("Content for this section will be added later.", "Content for this section will be added later."),
        ("[Response cut off]", "[Response cut off]"),
        ("[...truncated...]", "[...truncated...]"),
        ("Details will be added.", "Details will be added."),
        (
            "This section is a stub and needs to be filled in.",
            "This section is a stub and needs to be filled in.",
        ),
        ("Placeholder for the analysis.", "Placeholder for the analysis."),
        ("Dieser Abschnitt wird noch ergänzt.", "Dieser Abschnitt wird noch ergänzt."),
        ("À compléter", "À compléter"),
        ("Por definir", "Por definir"),
        ("待补充", "待补充"),
        ("準備中", "準備中"),
    ] {
        let document = format!(
            "# Report\n\nThe parser is done.\n\n## Next\n\n{text}\n\n## End\n\nThat is all there is.\n"
        );
        assert_eq!(failed_checks(&document), [("placeholder", quote.to_owned())], "{text}");
    }
}

#[test]
fn placeholder_words_in_sentences_are_not_placeholders() {
    for text in [
        "The TBD list has three items.",
        "Todo es posible con esta herramienta.",
        "The [name](https://example.org) leads there.",
        "Each `TBD` is counted.",
        "The input field shows a placeholder text until something is typed.",
        "Run `clone <your-repository>` first.",
        "The data to be added is checked before.",
        "- [x] Done",
        "Like `[replace]`, the `[update]` table is read for the root alone.",
        "- TBD: to be determined\n- WIP: work in progress",
        concat!("## Glossary\n\n- TO", "DO: a task that is left\n- TBD: what nobody has settled"),
        "| Short | Long |\n|---|---|\n| TBD | To be determined |",
        "Add your key to the file `.env`, and start the server with it.",
    ] {
        let document = format!("# Report\n\nThe parser is done.\n\n{text}\n\nThat is all there is.\n");
        assert_eq!(failed_checks(&document), [], "{text}");
    }
}
