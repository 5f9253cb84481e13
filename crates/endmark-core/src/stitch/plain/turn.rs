//! What a model says about the text rather than in it: announcements, remarks, refusals. In bits: how much
//! likelier the words are there than in a text.

/// One family of wordings and what it says.
struct Wording {
    bits: f64,
    /// With a line between each two.
    phrases: &'static str,
}

/// Words that a chat partner begins with, and a text hardly ever does.
const CHATTY: Wording = Wording {
    bits: 7.0,
    phrases: "\
        absolutely|alright|apologies|certainly|got it|here you go|i apologize|i apologise|i'm sorry|\
        i am sorry|my apologies|no problem|of course|ok|okay|sorry|sure|understood|thanks|thank you|\
        you're right|yes|right|great|good point|no worries|happy to|gladly|my bad|oops|pardon|\
        very well|as requested|as you asked|natürlich|gerne|klar|selbstverständlich|entschuldigung|\
        entschuldige|verzeihung|sicher|in ordnung|tut mir leid|es tut mir leid|alles klar|verstanden|\
        bien sûr|désolé|désolée|certainement|d'accord|entendu|je m'excuse|toutes mes excuses|\
        mes excuses|claro|por supuesto|disculpa|disculpe|disculpas|lo siento|perdón|perdona|entendido|\
        de acuerdo|con gusto|mis disculpas|certo|certamente|mi scuso|scusa|scusate|va bene|d'accordo|\
        ecco|com certeza|desculpe|desculpa|peço desculpas|entendi|natuurlijk|zeker|sorry voor|excuses|\
        begrepen|好的|当然|抱歉|对不起|不好意思|没问题|明白|はい|申し訳|もちろん|すみません|承知|네|물론|죄송|конечно|извините|хорошо|\
        прошу прощения",
};
/// Words that present what follows.
const PRESENTING: Wording = Wording {
    bits: 3.0,
    phrases: "\
        here is|here's|here are|here it is|here goes|here comes|below is|below are|please find|this is|\
        that's|the following|let me|let's|i will|i'll|i'm|i am|i've|i have|my|the rest|the remaining|\
        the remainder|the continuation|hier ist|hier kommt|hier folgt|hier geht|hier sind|ich mache|\
        ich setze|ich fahre|weiter|es folgt|nachfolgend|im folgenden|voici|voilà|je continue|\
        je reprends|je poursuis|la suite|ci-dessous|aquí|aqui|continúo|sigo|retomo|a continuación|\
        esta es|este es|el resto|ecco|di seguito|riprendo|continuo|segue|a seguir|aqui está|hier is|\
        hieronder|ik ga|以下|接着|继续|下面|这是|続き|以下は|이어서|다음은|вот|продолж",
};
/// Words that speak of going on from a cut.
const OF_CONTINUING: Wording = Wording {
    bits: 7.0,
    phrases: "\
        continuing|continuation|continued|continue from|continue where|continue the|continue exactly|\
        i will continue|i'll continue|let me continue|left off|the rest|rest of the|rest of it|\
        the remaining|remaining part|remaining content|remaining portion|remaining text|remaining code|\
        the remainder|cut off|cut-off|cutoff|cut short|got cut|was cut|truncated|truncation|\
        where it stopped|where i stopped|where we stopped|where it ended|where the text|where i was|\
        where my|picking up|pick up|resuming|resume from|interruption|interrupted|missing part|\
        was missing|is missing|previous message|previous response|last message|last response|\
        previous output|last valid token|the full text|the full code|the full version|\
        the full document|complete text|complete code|complete version|complete document|\
        whole document|entire document|complete file|full file|start over|from the start|\
        from the beginning|again from|from above|back to it|carrying on|carry on|going on from|\
        last point|last line|it stopped|fortsetzung|fortsetz|der rest|restliche|weiter, wo|weitermach|\
        aufgehört|unterbrechung|abgeschnitten|abgebrochen|weiter|fahre fort|vollständige|la suite|\
        suite|le reste|reprends|reprise|poursui|je continue|coupé|tronqué|arrêté|laissé|continuación|\
        continúo|continuo|continuando|el resto|lo que falta|restante|me quedé|interrupción|sigue el|\
        cortad|truncad|il resto|continuazione|interruzione|ero fermato|avevo lasciato|rimanente|\
        o restante|o resto|continuação|interrupção|onde parei|het vervolg|de rest|onderbreking|\
        gebleven was|继续|接着|剩余|续写|截断|中断|上文|其余|剩下|続き|途中|残り|이어|나머지|продолж|остальн|прерва",
};
/// Words with which a turn of its own begins: an offer, a refusal, a question back.
const NEW_TURN: Wording = Wording {
    bits: 16.0,
    phrases: "\
        i'm ready|i am ready|i'm so glad|i'm glad|i'm here to|i am here to|i'm happy to|i'd be happy|\
        i'd be glad|how can i|how may i|what would you|please share|as an ai|as a language model|\
        i'm sorry|i am sorry|i apologize|i'm unable|i am unable|i cannot|i can't|i can not|\
        i don't have|i do not have|i won't|i'm not able|i am not able|i must decline|i'm not sure what|\
        it seems you|it seems that you|it seems like you|it looks like you|it appears|you're welcome|\
        hello!|hello,|hi!|hi,|hi there|your message|your previous|your text|your request|i don't see|\
        i see that you|there is nothing|there's nothing|my previous|my last|could you|can you|\
        would you like|do you want|please provide|please clarify|please let me|sorry, but|sorry, i|\
        thank you for|thanks for|i understand|i need more|unfortunately, i|the text you|\
        the document above|the document you|the text above|the text describes|this text|this document|\
        in summary, the|you asked|you've|what should|which part|what do you|es tut mir leid|\
        leider kann ich|ich kann|wie kann ich|gerne helfe|könnten sie|kannst du|ihre nachricht|\
        deine nachricht|bitte teilen|bitte gib|hallo|je suis désolé|désolé, mais|je ne peux|\
        je ne suis pas|pourriez-vous|comment puis-je|bonjour|votre message|veuillez|lo siento|no puedo|\
        ¿en qué|¿podrías|¿puedes|hola|tu mensaje|parece que|mi dispiace|non posso|potresti|ciao|\
        desculpe, mas|não posso|você poderia|olá|het spijt me|ik kan|抱歉|对不起|我无法|我不能|请问|您好|你好|请提供|申し訳|\
        すみません|죄송|안녕|извините|к сожалению|я не могу",
};
/// Beginnings of a turn of its own that a text may have as well.
const FIRST_PERSON: Wording = Wording {
    bits: 4.0,
    phrases: "\
        i|i'll|i've|i'd|you|please|ich|je|yo|note that i|sure|ok|okay|yes|no",
};
/// How a model takes its leave.
const LEAVE: Wording = Wording {
    bits: 12.0,
    phrases: "\
        i hope this|i hope that|hope this helps|hope that helps|hope it helps|let me know|feel free to|\
        happy to help|happy to clarify|is there anything|anything else|would you like me|\
        do you want me|would you like to|if you need|if you have any|if you'd like|if you want me|\
        don't hesitate|do not hesitate|please let me|shall i|should i|want me to|i can also|\
        i can expand|ich hoffe|hoffe, das|sag bescheid|sagen sie|lass mich wissen|lassen sie mich|\
        melde dich|melden sie|gib bescheid|wenn du noch|wenn sie noch|falls du|falls sie|bei fragen|\
        soll ich|möchtest du|kann ich noch|j'espère que|n'hésite|dites-moi|dis-moi|faites-moi|\
        si vous avez|si vous souhaitez|souhaitez-vous|voulez-vous|espero que|avísame|avíseme|\
        hazme saber|no dudes|no dude en|si necesitas|si tienes|¿te gustaría|¿quieres|spero che|\
        fammi sapere|se hai|se ti serve|non esitare|vuoi che|avise-me|me avise|se precisar|se quiser|\
        fique à vontade|ik hoop|laat me weten|laat het me|als je nog|希望|如有|如果您|如果你|请随时|请告诉|还有什么|需要我|\
        ご不明|お役に|他に|도움이|надеюсь|дайте знать|если у вас|laat het weten|säg till|hör av dig|\
        låt mig veta|hoppas det|hoppas att|lad mig vide|sig til|si ifra|gi beskjed|håper det|håber det|\
        kerro, jos|kerro jos|ilmoita, jos|ilmoita jos|toivottavasti|daj znać|daj mi znać|mam nadzieję|\
        dej mi vědět|dejte mi vědět|dej vědět|doufám, že|umarım|bana bildir|haber ver|dă-mi de știre|\
        sper că|remélem|szólj|сподіваюся|дайте мені знати|дайте знати|сообщите, если|если нужно|\
        hy vọng|hãy cho tôi|semoga|beri tahu|εάν χρειάζεστε|ελπίζω|πείτε μου|أخبرني|آمل أن|मुझे बताएं|\
        उम्मीद है|추가로|필요하시면|알려 주세요|お知らせ|必要があれば|需要的话",
};
/// Words that speak of having gone on to the end.
const OF_COMPLETING: Wording = Wording {
    bits: 14.0,
    phrases: "\
        that's the rest|that is the rest|this is the rest|this completes|that completes|this concludes|\
        that concludes|the above completes|that's the complete|that's everything|that is everything|\
        that's all|the response is now|the output is now|the output is complete|\
        the text is now complete|the document is now complete|the file is now complete|\
        the code is now complete|now complete|is complete now|this is the end of|that is the end of|\
        i've completed|i have completed|that should complete|end of document|end of file|\
        end of response|end of continuation|end of the document|end of text|end of output|\
        picked up exactly|i've picked up|i continued|i've continued|i have continued|cut off earlier|\
        was cut off|where the previous|the continuation|of the continuation|the remaining|damit ist|\
        das war der rest|das ist der rest|das war's|ende des|nun vollständig|jetzt vollständig|\
        voilà, c'est|c'est la fin|fin du|est maintenant complet|eso es todo|esto completa|fin del|\
        ahora está completo|questo completa|isso completa|以上|完整|到此|結束|结束|完了|これで|\
        the rest of the object|the above continues|with that, the|you can now merge|merge both parts|\
        the two parts|the previous part|i kept the same|i have closed|i've closed|i've now provided|\
        dat was alles|dat is alles|det var allt|det var alt|se oli siinä|to już wszystko|to je vše|\
        hepsi bu kadar|asta e tot|ez minden|це все|это всё|это все|это полный|готово.|вот и всё|\
        đó là tất cả|itu saja|이상입니다|输出完毕",
};

impl Wording {
    /// The bits if a text begins with one of the phrases, as words of their own.
    fn begins(&self, text: &str) -> f64 {
        let found = self
            .phrases
            .split('|')
            .any(|phrase| text.strip_prefix(phrase).is_some_and(|rest| stands_apart(phrase, rest)));
        if found { self.bits } else { 0.0 }
    }

    /// The bits if a text begins with one of the phrases, whatever their last word goes on to.
    fn leads(&self, text: &str) -> f64 {
        if self.phrases.split('|').any(|phrase| text.starts_with(phrase)) { self.bits } else { 0.0 }
    }

    /// The bits if a text contains one of the phrases.
    fn within(&self, text: &str) -> f64 {
        let found = self.phrases.split('|').any(|phrase| text.contains(phrase));
        if found { self.bits } else { 0.0 }
    }
}

/// Whether a phrase ends where a word does.
fn stands_apart(phrase: &str, rest: &str) -> bool {
    let of_words = phrase.ends_with(|last: char| last.is_alphanumeric() && u32::from(last) < 0x2e80);
    !of_words
        || !rest.starts_with(|next: char| {
            next.is_alphanumeric()
                || matches!(next, '_' | '(' | '-' | '.' | '[' | '=') && !rest.starts_with(". ")
        })
        || rest == "."
}

/// A line without the signs of emphasis and brackets around it, in small letters.
fn plain(line: &str) -> String {
    line.trim()
        .trim_matches(|sign: char| {
            matches!(
                sign,
                '*' | '_'
                    | '#'
                    | '>'
                    | '¡'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | ' '
                    | '-'
                    | '—'
                    | '（'
                    | '）'
                    | '【'
                    | '】'
            )
        })
        .to_lowercase()
        .replace('\u{2019}', "'")
}

/// The longest that an announcement or a remark is, in bytes.
const LONGEST: usize = 320;

/// How much a line or sentence at the beginning of a continuation reads as an announcement of it, in bits.
pub(super) fn announcement(line: &str) -> f64 {
    let lower = plain(line);
    if lower.is_empty() || lower.len() > LONGEST {
        return 0.0;
    }
    let of_code = |sign: char| matches!(sign, '{' | '}' | ';' | '=' | '<' | '\\' | '|' | '`' | '$');
    if lower.contains(of_code)
        || line.trim_start().starts_with(char::is_lowercase) && !line.trim_start().starts_with("i'")
    {
        return 0.0;
    }
    let bracketed = line.trim().starts_with(['(', '[', '*', '_', '（', '【'])
        && line.trim().ends_with([')', ']', '*', '_', '）', '】']);
    let chatty = CHATTY.begins(&lower);
    let presenting = PRESENTING.begins(&lower);
    let continuing = OF_CONTINUING.within(&lower);
    let ends = match lower.chars().last() {
        Some(':' | '：' | '…') => 3.0,
        Some('.' | '!' | '。' | '！' | '?') => 1.0,
        _ if bracketed => 3.0,
        _ => 0.0,
    };
    if ends == 0.0 || chatty + continuing == 0.0 && presenting == 0.0 {
        return 0.0;
    }
    // Without the words that announcements begin with, only a short one is told from a sentence of the text.
    let words = lower.split_whitespace().count();
    if chatty + presenting == 0.0 && (words > 8 || ends < 3.0) || words > 30 {
        return 0.0;
    }
    if continuing == 0.0 && NEW_TURN.begins(&lower) > 0.0 {
        return 0.0;
    }
    let alone = if continuing > 0.0 && lower.split_whitespace().count() <= 3 { 5.0 } else { 0.0 };
    chatty.max(presenting) + continuing + ends + alone + if bracketed { 2.0 } else { 0.0 }
}

/// How much the last paragraph of a text reads as a remark about it, in bits.
pub(super) fn remark(paragraph: &str) -> f64 {
    let lower = plain(paragraph);
    if lower.is_empty() || lower.len() > LONGEST || paragraph.trim().starts_with(char::is_lowercase) {
        return 0.0;
    }
    let of_code = |sign: char| matches!(sign, '{' | '}' | ';' | '=' | '<' | '\\' | '|' | '$');
    if lower.contains(of_code) {
        return 0.0;
    }
    let words = lower.split_whitespace().count();
    let completing = if words <= 14 { OF_COMPLETING.within(&lower) } else { OF_COMPLETING.leads(&lower) };
    LEAVE.leads(&lower).max(completing)
}

/// How much a continuation begins as a turn of its own does, in bits.
pub(super) fn new_turn(continuation: &str) -> f64 {
    let start = continuation.trim_start();
    if start.starts_with(char::is_lowercase) {
        return 0.0;
    }
    let line = start.lines().next().unwrap_or_default();
    let lower = plain(&line[..line.floor_char_boundary(120)]);
    NEW_TURN.begins(&lower).max(FIRST_PERSON.begins(&lower))
}

/// Whether a line reads as a sentence of prose.
pub(super) fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    let ends = line.ends_with(['.', '!', '?', ':', '。', '！', '？', '…', ')', '*']);
    ends && !line.starts_with(char::is_lowercase)
        && line.split_whitespace().count() >= 2
        && !line.contains(['{', '}', '='])
        || ends && line.chars().any(|sign| u32::from(sign) > 0x2e80)
}

/// Whether the continuation says what it was asked, rather than what it was asked for: words of the prompt that
/// are not in the text.
pub(super) fn quotes_the_prompt(initial: &str, continuation: &str) -> bool {
    const WORDS: &[&str] = &[
        "last valid token",
        "any content before the last",
        "your last reply was cut off",
        "text has been cut off",
    ];
    let (said, text) = (continuation.to_ascii_lowercase(), initial.to_ascii_lowercase());
    WORDS.iter().any(|words| said.contains(words) && !text.contains(words))
}
