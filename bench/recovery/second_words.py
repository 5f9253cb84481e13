"""What the models of the second generator say, and the words of its documents. It uses nothing from the tables of the
first.
"""

from __future__ import annotations

from chance import Chance

BEFORE = """
Picking the thread up again at the place where it broke off:
Here comes the missing half.
The answer ran into the length limit. What is still missing follows:
Resuming.
On it! Rest of the output below.
This is part two:
Part 2 of 2
✅ Continuing right where I stopped…
No worries, I still have the draft. Next comes:
I ran out of room there. I am adding what was left over now:
> continuing the reply
Let me give you what had not fit before.
You are right, that stopped halfway. The other half:
(picking up mid-sentence)
**Next part**
## Continuation
OK — output resumes here:
What follows attaches directly to the last character of my previous message:
Alright, the remainder, without repeating myself:
Weiter im Text, ohne Wiederholung:
Der zweite Teil der Ausgabe folgt:
Voilà la fin de ma réponse, reprise à l'endroit exact :
Je poursuis ma réponse interrompue :
Retomo la respuesta en el punto del corte:
Sigue la parte que faltaba:
Riprendo da qui:
Vervolg van mijn antwoord:
下面是没有输出完的部分：
続きをお送りします：
Дописываю то, что не поместилось:
""".strip().split("\n")
AFTER = """
And with that my answer is complete.
Everything that had been cut is now there; simply append it to the first message.
Shall I also produce a version with comments?
Tell me if it stops short again and I will send what is missing.
That was the whole output, no further parts follow.
— end of my reply —
(That is all of it.)
Do you want me to check the joined result?
I did not change anything in the part you already have.
Glad to rework it if something is off!
🎉 All done, happy to help with the next step.
Das war der komplette Rest meiner Antwort.
Ma réponse est maintenant complète, dites-moi si cela vous convient.
Mi respuesta queda así terminada. ¿Quieres que la revise?
我的回答到此全部结束，需要修改请告诉我。
""".strip().split("\n")
ASKING = """
Which format would you like the remainder in?
Could you paste the part you already have? I can no longer see it.
Do you mean the message above, or another one?
Before I go on: should the style stay the same?
Soll ich mit demselben Dokument weitermachen?
¿Podrías enviarme otra vez el principio?
""".strip().split("\n")
DECLINING = """
Unfortunately there is no earlier output in this conversation that I could extend.
I have no memory of the text you mention and will not guess its ending.
That is not something I can produce.
My apologies, going on with this would break the rules I follow.
Leider liegt mir kein abgebrochener Text vor.
Je n'ai pas accès au début de ce texte.
""".strip().split("\n")
SUMMING_UP = """
The passage above introduces its subject and lists the most important entries one after the other.
In short, the text you show ends early, and its last entry is incomplete.
What you posted looks like the first half of a longer file.
The document seems finished to me; there is nothing to add.
Der gezeigte Abschnitt beschreibt den Aufbau und bricht dann ab.
""".strip().split("\n")
NOUNS = """
kettle ladder orchard violin cabinet glacier ferry bakery compass meadow theatre tunnel carpenter nurse captain farmer
child poet judge pilot blanket basket candle hammer needle saddle barrel chimney cellar attic balcony fountain
""".split()
ADJECTIVES = "old narrow wooden silent bright heavy broken golden patient hungry distant curious cheap muddy warm".split()
VERBS = "carried painted watched repaired followed borrowed crossed forgot praised measured emptied guarded hid".split()
PLACES = """
behind the barn|near the well|on the second floor|across the square|under the stairs|beyond the hill|at the market|in
 the rain|after the concert|before sunrise|during the war|every other week|without a word|for the third time
""".replace("\n", "").strip().split("|")
FOREIGN = {
    "german": ("Der alte Zug|Ein müder Bäcker|Die Nachbarin|Unser Lehrer|Das Kind", "öffnete|suchte|verkaufte|sah|brachte",
               "die grüne Tür|einen Schlüssel|das Brot von gestern|den Brief der Tante|zwei Äpfel"),
    "french": ("Le vieux pêcheur|La voisine|Un élève distrait|Notre boulanger|L'été", "regardait|perdit|vendait|évitait|préparait",
               "la lumière du port|une clé rouillée|le pain du matin|l'hôtel fermé|des œufs frais"),
    "spanish": ("El maestro|La niña|Un pájaro|Mi abuela|El camión", "encontró|pintaba|llevó|rompió|escuchaba",
                "la montaña nevada|una canción|el árbol más alto|los papeles|un señor"),
    "russian": ("Старый мельник|Моя сестра|Учитель|Поезд", "увидел|потерял|принёс|ждал",
                "новую книгу|зелёный забор|письмо друга|тихий берег"),
    "chinese": ("老师|邻居|孩子们|船长", "看见了|带来了|修好了|忘记了", "那把旧伞|一封长信|河边的灯|两个苹果"),
}  # fmt: skip


def clause(chance: Chance) -> str:
    """Returns a clause without a capital letter at its start and without a full stop."""
    subject = f"{chance.pick(['the', 'a', 'our', 'another'])} {chance.pick(ADJECTIVES)} {chance.pick(NOUNS)}"
    object_ = f"the {chance.pick(NOUNS)}" if chance.maybe(0.6) else f"{chance.between(2, 90)} {chance.pick(NOUNS)}s"
    return f"{subject} {chance.pick(VERBS)} {object_}" + (f" {chance.pick(PLACES)}" if chance.maybe(0.6) else "")


def sentence(chance: Chance, tongue: str = "english") -> str:
    """Returns a sentence with its end mark."""
    if tongue != "english" and chance.maybe(0.8):
        parts = [chance.pick(part.split("|")) for part in FOREIGN[tongue]]
        return "".join(parts) + "。" if tongue == "chinese" else " ".join(parts) + "."
    form = chance.below(6)
    first = clause(chance)
    if form == 0:
        text = f"{first}, {chance.pick(['and', 'but', 'so', 'while'])} {clause(chance)}"
    elif form == 1:
        text = f"“{first[0].upper()}{first[1:]},” said {chance.pick(['Ida', 'Bruno', 'Mrs Falk', 'the ' + chance.pick(NOUNS)])}"
    elif form == 2:
        text = f"when {first}, nobody noticed; {clause(chance)}"
    elif form == 3:
        text = f"{chance.pick(['why did', 'who knew that'])} {first}"
        return text[0].upper() + text[1:] + "?"
    else:
        text = first
    return text[0].upper() + text[1:] + chance.pick([".", ".", ".", ".", "!"])


def paragraph(chance: Chance, tongue: str = "english", most: int = 6) -> str:
    """Returns a few sentences."""
    return ("" if tongue == "chinese" else " ").join(sentence(chance, tongue) for _ in range(chance.between(1, most)))


def tongue(chance: Chance) -> str:
    """Returns the language of a document."""
    return chance.weighted({"english": 8.0, **{name: 0.6 for name in FOREIGN}})


def name(chance: Chance, joint: str = "_") -> str:
    """Returns a name of one or two words."""
    return joint.join(chance.pick(NOUNS) for _ in range(chance.between(1, 2)))
