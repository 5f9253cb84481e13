"""What models say around a continuation, in many languages: announcements, apologies, remarks, refusals, questions."""

from __future__ import annotations

from chance import Chance

WHAT = {
    "json": ["JSON", "JSON payload", "tool call", "arguments", "object", "output", "payload"],
    "jsonl": ["JSON Lines", "records", "lines", "output", "rows"],
    "markdown": ["document", "text", "section", "README", "answer"],
    "text": ["code", "file", "text", "document", "content"],
    "tags": ["XML", "file", "content", "output", "tags"],
}
"""What a model calls the thing it goes on with; fills `{what}`."""

PREAMBLES = """
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
[continued]
(continuing from previous message)
...continuing from the previous response:
As requested, only the remaining {what}:
Resuming output:
Right, where were we? Here is the rest:
No problem, here's the remaining part:
Great, let's finish the {what}:
Thanks for the reminder. The {what} continues as follows:
To continue, here is what comes next:
Natürlich, hier ist der Rest:
Gerne! Hier geht es weiter:
Hier ist die Fortsetzung:
Ich setze dort fort, wo ich aufgehört habe:
Klar, hier ist der fehlende Teil des Dokuments:
Fortsetzung:
Bien sûr, voici la suite :
Voici le reste du contenu :
Je continue là où je me suis arrêté :
Voici la partie restante :
D'accord, je reprends :
Suite :
Claro, aquí está el resto:
Por supuesto. Continúo desde donde me quedé:
Aquí tienes la continuación:
Continuación:
Claro! Aqui está o restante:
Continuando de onde parei:
Aqui está a continuação do conteúdo:
Certo, ecco il resto:
Ecco la continuazione:
Continuo da dove mi ero interrotto:
Natuurlijk, hier is de rest:
Hier gaat het verder:
Jasne, oto dalsza część:
Kontynuuję od miejsca, w którym przerwałem:
Конечно, вот продолжение:
Продолжаю с того места, где остановился:
Вот оставшаяся часть:
Elbette, kaldığım yerden devam ediyorum:
İşte geri kalanı:
好的，以下是剩余部分：
当然，继续上文：
接着上面的内容：
以下是后续内容：
承知しました。続きは以下の通りです：
はい、続きです：
中断したところから続けます。
네, 이어서 작성하겠습니다:
나머지 내용은 다음과 같습니다:
بالطبع، إليك بقية النص:
ज़रूर, बाकी हिस्सा यहाँ है:
Självklart, här kommer resten:
""".strip().split("\n")

APOLOGIES = """
I apologize for the interruption. Here is the rest:
Apologies for the cut-off! Continuing:
Sorry about that, my previous message was truncated. Here's the remaining {what}:
I'm sorry, the response was cut short. Continuing from there:
Sorry for the confusion. Continuing the {what} without repeating anything:
My apologies, let me finish the {what}:
Entschuldigung, die Antwort wurde abgeschnitten. Hier ist der Rest:
Désolé pour la coupure, voici la suite :
Perdón por el corte, aquí sigue:
Desculpe pela interrupção. Segue o restante:
Scusa per l'interruzione, ecco il resto:
Извините, ответ был обрезан. Продолжаю:
抱歉，刚才的回复被截断了，继续：
申し訳ありません。途中で切れてしまいました。続きです：
죄송합니다. 이어서 작성하겠습니다:
""".strip().split("\n")

REMARKS = """
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
Damit ist das Dokument vollständig.
Sag Bescheid, wenn du noch etwas brauchst!
Ich hoffe, das hilft.
Voilà, le document est complet.
N'hésitez pas si vous avez des questions.
J'espère que cela vous aide !
Con esto queda completo el documento.
¡Avísame si necesitas algo más!
Espero que te sirva.
Isso completa o conteúdo.
Se precisar de mais alguma coisa, é só avisar.
Il documento è ora completo.
Fammi sapere se serve altro!
На этом документ завершён.
Если нужно что-то ещё, дайте знать.
Надеюсь, это поможет!
以上就是完整内容。
如果还有其他问题，请告诉我。
希望对你有帮助！
以上で完了です。
ご不明な点があればお知らせください。
이상입니다. 더 필요한 것이 있으면 말씀해 주세요.
Tot slot: het document is nu compleet.
To wszystko, daj znać, jeśli potrzebujesz czegoś jeszcze.
Umarım yardımcı olur!
""".strip().split("\n")

REFUSALS = """
I'm sorry, but I can't continue that.
I'm sorry, but I don't have access to the previous output, so I cannot continue it.
I can't help with that request.
I'm unable to continue the {what} as I don't have the earlier part.
As an AI language model, I cannot resume a previous response.
Sorry, I can't assist with that.
I don't have enough context to continue the {what}.
Das kann ich leider nicht fortsetzen.
Je ne peux pas continuer ce contenu.
Lo siento, no puedo continuar con eso.
Desculpe, não posso continuar isso.
Mi dispiace, non posso continuare.
Извините, я не могу это продолжить.
抱歉，我无法继续。
申し訳ありませんが、続けることはできません。
""".strip().split("\n")

QUESTIONS = """
Could you please provide the last part of the {what} so that I can continue?
Which part would you like me to continue?
What would you like me to do with this {what}?
It looks like your message was cut off. Could you resend it?
Do you want me to continue from the last line or start over?
Can you clarify what you mean by continue?
Can you share the full {what}?
Welchen Teil soll ich fortsetzen?
Pouvez-vous préciser ce que vous souhaitez ?
¿Qué parte quieres que continúe?
Qual parte devo continuar?
Что именно мне продолжить?
请问您希望我继续哪一部分？
どの部分を続ければよいでしょうか？
""".strip().split("\n")

EXPLANATIONS = """
The {what} you shared appears to be truncated in the middle of a value. It seems to describe a file that is written to disk, followed by several settings. To complete it, you would need to close the remaining parts.
This {what} defines a few entries. The first one sets the path, and the second one holds the content. The content was still being written when the output stopped.
The last valid token is part of a longer text. In order to complete the {what}, the missing characters have to be added after it, and everything that is open has to be closed.
Let me explain what this does. It first reads the input, then checks each line, and finally reports what is missing.
Der Ausschnitt zeigt den Anfang einer Datei. Danach folgen vermutlich weitere Einträge, die hier fehlen.
Ce contenu décrit une liste d'éléments. La suite dépend de ce que vous souhaitez obtenir.
""".strip().split("\n")

PLACEHOLDERS = """
// ... rest of the code remains the same
# rest of the code unchanged
... (remaining rows omitted for brevity) ...
/* the rest of the file is identical */
<!-- remaining content unchanged -->
[... truncated ...]
""".strip().split("\n")


def said(chance: Chance, bank: list[str], format_: str) -> str:
    """One wording of a bank, about this kind of text."""
    return chance.pick(bank).replace("{what}", chance.pick(WHAT[format_]))
