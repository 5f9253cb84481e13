"""What models say around a continuation, in many languages: announcements, apologies, remarks, refusals, questions."""

from __future__ import annotations

from chance import Chance

LANGUAGES = {
    "English": 12.0, "German": 2.0, "French": 2.0, "Spanish": 2.0, "Portuguese": 1.5, "Italian": 1.5, "Chinese": 2.0,
    "Japanese": 2.0, "Russian": 2.0, "Korean": 1.0, "Dutch": 0.5, "Polish": 0.5, "Turkish": 0.5, "Swedish": 0.3,
    "Arabic": 0.5, "Hindi": 0.5,
}  # fmt: skip
"""Languages that models speak, with their weights."""
WHAT = {
    "json": ["JSON", "JSON payload", "tool call", "arguments", "object", "output", "payload"],
    "jsonl": ["JSON Lines", "records", "lines", "output", "rows"],
    "markdown": ["document", "text", "section", "README", "answer"],
    "text": ["code", "file", "text", "document", "content"],
    "tags": ["XML", "file", "content", "output", "tags"],
}
"""Names that a model gives to the text it continues; fills `{what}`."""

Bank = dict[str, list[str]]
"""Wordings by language."""


def _bank(text: str) -> Bank:
    found: Bank = {}
    language = ""
    for line in text.strip().split("\n"):
        if line.startswith("[") and line.endswith("]") and line[1:-1] in LANGUAGES:
            language = line[1:-1]
        else:
            found.setdefault(language, []).append(line)
    return found


PREAMBLES = _bank("""
[English]
Sure, continuing from where I left off:
Sure! Here is the rest of the {what}:
Here is the rest:
Here's the remaining {what}:
Here is the continuation of the {what}:
Continuing from where I left off:
Continuing:
Continued:
Certainly! Here's the remainder of the {what}:
Of course. Picking up right where it stopped:
Of course, here you go:
Absolutely! Let me continue.
Okay, continuing the {what} from the last valid token:
Ok, here is the remaining {what}:
Understood. Resuming the {what}:
Got it, I'll continue exactly from that point:
Let me continue from where the output was cut off:
Let me pick up where I left off.
I'll continue from the exact point of interruption:
I will now output only the remaining {what}.
My previous response was cut off, so here is the rest:
The previous output was truncated. Continuing:
It looks like my response got cut off. Here's the rest of the {what}:
Below is the continuation:
Below is the remaining part of the {what}:
Remaining {what}:
(continued)
(cont.)
(continuing from previous message)
...continuing from the previous response:
As requested, only the remaining {what}:
Resuming output:
Right, where were we? Here is the rest:
No problem, here's the remaining part:
Great, let's finish the {what}:
Thanks for the reminder. The {what} continues as follows:
To continue, here is what comes next:
[German]
Natürlich, hier ist der Rest:
Gerne! Hier geht es weiter:
Hier ist die Fortsetzung:
Ich setze dort fort, wo ich aufgehört habe:
Klar, hier ist der fehlende Teil des Dokuments:
Fortsetzung:
[French]
Bien sûr, voici la suite :
Voici le reste du contenu :
Je continue là où je me suis arrêté :
Voici la partie restante :
D'accord, je reprends :
Suite :
[Spanish]
Claro, aquí está el resto:
Por supuesto. Continúo desde donde me quedé:
Aquí tienes la continuación:
Continuación:
[Portuguese]
Claro! Aqui está o restante:
Continuando de onde parei:
Aqui está a continuação do conteúdo:
[Italian]
Certo, ecco il resto:
Ecco la continuazione:
Continuo da dove mi ero interrotto:
[Dutch]
Natuurlijk, hier is de rest:
Hier gaat het verder:
[Polish]
Jasne, oto dalsza część:
Kontynuuję od miejsca, w którym przerwałem:
[Russian]
Конечно, вот продолжение:
Продолжаю с того места, где остановился:
Вот оставшаяся часть:
[Turkish]
Elbette, kaldığım yerden devam ediyorum:
İşte geri kalanı:
[Chinese]
好的，以下是剩余部分：
当然，继续上文：
接着上面的内容：
以下是后续内容：
[Japanese]
承知しました。続きは以下の通りです：
はい、続きです：
中断したところから続けます。
[Korean]
네, 이어서 작성하겠습니다:
나머지 내용은 다음과 같습니다:
[Arabic]
بالطبع، إليك بقية النص:
[Hindi]
ज़रूर, बाकी हिस्सा यहाँ है:
[Swedish]
Självklart, här kommer resten:
""")

APOLOGIES = _bank("""
[English]
I apologize for the interruption. Here is the rest:
Apologies for the cut-off! Continuing:
Sorry about that, my previous message was truncated. Here's the remaining {what}:
I'm sorry, the response was cut short. Continuing from there:
Sorry for the confusion. Continuing the {what} without repeating anything:
My apologies, let me finish the {what}:
[German]
Entschuldigung, die Antwort wurde abgeschnitten. Hier ist der Rest:
[French]
Désolé pour la coupure, voici la suite :
[Spanish]
Perdón por el corte, aquí sigue:
[Portuguese]
Desculpe pela interrupção. Segue o restante:
[Italian]
Scusa per l'interruzione, ecco il resto:
[Russian]
Извините, ответ был обрезан. Продолжаю:
[Chinese]
抱歉，刚才的回复被截断了，继续：
[Japanese]
申し訳ありません。途中で切れてしまいました。続きです：
[Korean]
죄송합니다. 이어서 작성하겠습니다:
""")

REMARKS = _bank("""
[English]
That completes the {what}.
That's the rest of the {what}. Let me know if you need anything else!
Let me know if you'd like me to explain any part of it.
I hope this helps!
Hope that helps! Let me know if you have any questions.
The {what} is now complete.
This completes the {what} from where it was cut off.
That should be everything.
Feel free to ask if you need any changes.
Is there anything else I can help you with?
Would you like me to make any adjustments?
Note: the {what} above continues directly from the last token.
Done.
[End of output]
(End of {what})
You can now concatenate both parts to get the full {what}.
If you run into any issues, just tell me.
As requested, I only output the remaining {what}.
Please let me know if the {what} needs to be split further.
This is the final part; nothing was repeated.
[German]
Damit ist das Dokument vollständig.
Sag Bescheid, wenn du noch etwas brauchst!
Ich hoffe, das hilft.
[French]
Voilà, le document est complet.
N'hésitez pas si vous avez des questions.
J'espère que cela vous aide !
[Spanish]
Con esto queda completo el documento.
¡Avísame si necesitas algo más!
Espero que te sirva.
[Portuguese]
Isso completa o conteúdo.
Se precisar de mais alguma coisa, é só avisar.
[Italian]
Il documento è ora completo.
Fammi sapere se serve altro!
[Russian]
На этом документ завершён.
Если нужно что-то ещё, дайте знать.
Надеюсь, это поможет!
[Chinese]
以上就是完整内容。
如果还有其他问题，请告诉我。
希望对你有帮助！
[Japanese]
以上で完了です。
ご不明な点があればお知らせください。
[Korean]
이상입니다. 더 필요한 것이 있으면 말씀해 주세요.
[Dutch]
Tot slot: het document is nu compleet.
[Polish]
To wszystko, daj znać, jeśli potrzebujesz czegoś jeszcze.
[Turkish]
Umarım yardımcı olur!
""")

REFUSALS = _bank("""
[English]
I'm sorry, but I can't continue that.
I'm sorry, but I don't have access to the previous output, so I cannot continue it.
I can't help with that request.
I'm unable to continue the {what} as I don't have the earlier part.
As an AI language model, I cannot resume a previous response.
Sorry, I can't assist with that.
I don't have enough context to continue the {what}.
[German]
Das kann ich leider nicht fortsetzen.
[French]
Je ne peux pas continuer ce contenu.
[Spanish]
Lo siento, no puedo continuar con eso.
[Portuguese]
Desculpe, não posso continuar isso.
[Italian]
Mi dispiace, non posso continuare.
[Russian]
Извините, я не могу это продолжить.
[Chinese]
抱歉，我无法继续。
[Japanese]
申し訳ありませんが、続けることはできません。
""")

QUESTIONS = _bank("""
[English]
Could you please provide the last part of the {what} so that I can continue?
Which part would you like me to continue?
What would you like me to do with this {what}?
It looks like your message was cut off. Could you resend it?
Do you want me to continue from the last line or start over?
Can you clarify what you mean by continue?
Can you share the full {what}?
[German]
Welchen Teil soll ich fortsetzen?
[French]
Pouvez-vous préciser ce que vous souhaitez ?
[Spanish]
¿Qué parte quieres que continúe?
[Portuguese]
Qual parte devo continuar?
[Russian]
Что именно мне продолжить?
[Chinese]
请问您希望我继续哪一部分？
[Japanese]
どの部分を続ければよいでしょうか？
""")

EXPLANATIONS = _bank("""
[English]
The {what} you shared appears to be truncated in the middle of a value. It seems to describe a file that is written to disk, followed by several settings. To complete it, you would need to close the remaining parts.
This {what} defines a few entries. The first one sets the path, and the second one holds the content. The content was still being written when the output stopped.
The last valid token is part of a longer text. In order to complete the {what}, the missing characters have to be added after it, and everything that is open has to be closed.
Let me explain what this does. It first reads the input, then checks each line, and finally reports what is missing.
[German]
Der Ausschnitt zeigt den Anfang einer Datei. Danach folgen vermutlich weitere Einträge, die hier fehlen.
[French]
Ce contenu décrit une liste d'éléments. La suite dépend de ce que vous souhaitez obtenir.
""")

ENDINGS = """
The end.
Fin
See the appendix.
See chapter seven for the details.
Details are in the appendix.
Yours sincerely,
With kind regards, Tove Lind
— R. Okafor
And so it came to rest.
She never asked again.
By evening the rain had stopped.
That was the end of the matter.
There was nothing left to say.
No one has seen it since.
What became of him is not known.
This concludes the second lesson.
The remaining figures are given overleaf.
The complete list is kept at the office.
The work continues.
It has been quiet ever since.
In the end, both were right.
All figures are in thousands.
All of it was sold in spring.
Last revised in March.
Printed in Leiden.
Source: port authority.
Total: 1,204
Copyright 2021 the authors.
To be continued.
Then everything went dark.
Was that all?
Who knows!
Ende.
Der Rest ist Geschichte.
Voir l'annexe.
Y así terminó todo.
На этом всё закончилось.
故事结束了。
""".strip().split("\n")
"""Ordinary last sentences of texts, none of them about an answer; kept apart from the bank in `bench/register`."""

PLACEHOLDERS = """
// ... rest of the code remains the same
# rest of the code unchanged
... (remaining rows omitted for brevity) ...
/* the rest of the file is identical */
<!-- remaining content unchanged -->
[... truncated ...]
""".strip().split("\n")


def spoken(chance: Chance) -> str:
    """Chooses the language of one continuation."""
    return chance.weighted(LANGUAGES)


def wording_for(chance: Chance, bank: Bank, format_: str, language: str) -> str:
    """Returns a wording of a bank for this kind of text. Uses English if the bank lacks the language."""
    return chance.pick(bank.get(language) or bank["English"]).replace("{what}", chance.pick(WHAT[format_]))
