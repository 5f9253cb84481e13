//! The behaviours of a model that is asked to continue.

use testkit::{Begins, Manner, RepeatedReply, Seam, Style};

use super::dice::Dice;
use super::documents::Kind;

/// The kind of an answer, with its name in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Behaviour {
    Anchor,
    Shown,
    Cut,
    Announced,
    Remark,
    Fenced,
    SpaceLost,
    SpaceAdded,
    Rewritten,
    CutAgain,
    Anew,
    AboutTheCut,
    Nothing,
    Reasons,
    Loops,
    AgainShort,
    AgainOther,
}

const ANNOUNCEMENTS: [&str; 7] = [
    "Sure, here is the rest:\n\n",
    "Here is the continuation:\n\n",
    "Continuing from where I left off:\n\n",
    "I apologize for the interruption. Here's the rest of it:\n\n",
    "Certainly! Here's the remaining part:\n",
    "Understood. ",
    "Natürlich, hier ist der Rest:\n\n",
];
const REMARKS: [&str; 5] = [
    "\n\nLet me know if you need anything else.",
    "\n\nThat completes the reply.",
    "\n\nIs there anything else I can help you with?",
    "\n\nI hope this helps! Feel free to ask if you have any questions.",
    "\nPlease let me know if you would like any changes.",
];
const ABOUT_THE_CUT: [&str; 7] = [
    "It looks like my last reply was cut off. Could you tell me where I should go on?",
    "It seems that my previous message was interrupted. Please share the last part so that I can continue.",
    "I'm sorry, but I can't see the text that you are referring to.",
    "I apologize for the confusion. Could you please provide more context?",
    "Could you clarify what you would like me to continue?",
    "My last reply ended in the middle of a sentence. Would you like me to start over?",
    "Sorry, I cannot help with that.",
];
const REASONS: [&str; 6] = [
    "<think>Go on from there.</think>",
    "<think>\nThe user wants the rest of it.\n</think>\n\n",
    "<thinking>Where was I?</thinking>\n",
    "<reasoning>I was cut off and go on.</reasoning>",
    "<seed:think>The rest follows.</seed:think>",
    "◁think▷I go on.◁/think▷",
];
const LOOPS: [&str; 4] =
    ["and so on ", "The harbour was quiet.\n", "{\"id\": 1, \"name\": \"gull\"}, ", "- one more\n"];
const SHORT: [&str; 4] = ["Sure!", "Here you are.", "{}", "Done."];
/// Another document of the same kind.
const OTHER: [&str; 4] = [
    "The committee met on Tuesday and discussed the budget at length. Nobody was content with it, and the meeting was closed.",
    "# Minutes\n\n- The budget was discussed.\n- Nobody was content.\n",
    "{\"title\": \"Minutes\", \"items\": [{\"id\": 900, \"name\": \"budget\", \"open\": true}], \"total\": 1}",
    "{\"id\": 900, \"name\": \"budget\"}\n{\"id\": 901, \"name\": \"roof\"}\n",
];
const NOTHING: [&str; 4] = [
    "(nothing further)",
    "There is nothing left to add; the reply was already complete.",
    "[end of reply]",
    "The text above is complete.",
];

impl Behaviour {
    pub(super) const ALL: [Self; 13] = [
        Self::Anchor,
        Self::Shown,
        Self::Cut,
        Self::Announced,
        Self::Remark,
        Self::Fenced,
        Self::SpaceLost,
        Self::SpaceAdded,
        Self::Rewritten,
        Self::CutAgain,
        Self::Anew,
        Self::AboutTheCut,
        Self::Nothing,
    ];

    /// Those of models that go astray, or think aloud.
    pub(super) const ASTRAY: [Self; 4] = [Self::Reasons, Self::Loops, Self::AgainShort, Self::AgainOther];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anchor => "begins with the anchor",
            Self::Shown => "goes on behind what is shown",
            Self::Cut => "goes on from the cut",
            Self::Announced => "announces the rest",
            Self::Remark => "adds a closing remark",
            Self::Fenced => "fences the rest",
            Self::SpaceLost => "loses white space",
            Self::SpaceAdded => "adds white space",
            Self::Rewritten => "rewrites the last word",
            Self::CutAgain => "is cut again",
            Self::Anew => "begins anew",
            Self::AboutTheCut => "talks about the cut",
            Self::Nothing => "says that there is no more",
            Self::Reasons => "thinks before the rest",
            Self::Loops => "repeats itself without end",
            Self::AgainShort => "begins anew with something short",
            Self::AgainOther => "begins anew with other values",
        }
    }

    /// Whether the answer contains the exact bytes after the shown part.
    pub(super) fn keeps_the_bytes(self) -> bool {
        match self {
            Self::Anchor
            | Self::Shown
            | Self::Announced
            | Self::Remark
            | Self::Fenced
            | Self::SpaceLost
            | Self::SpaceAdded
            | Self::CutAgain
            | Self::Anew
            | Self::Reasons => true,
            Self::Cut
            | Self::Rewritten
            | Self::AboutTheCut
            | Self::Nothing
            | Self::Loops
            | Self::AgainShort
            | Self::AgainOther => false,
        }
    }

    /// Whether an answer to a document of this kind can be so.
    pub(super) fn suits(self, kind: Kind) -> bool {
        self != Self::Rewritten || kind.is_prose()
    }

    /// The manner of one exchange.
    pub(super) fn manner(self, kind: Kind, dice: &mut Dice) -> Manner {
        // Mostly as instructed: texts from the quoted part on, and JSON without it.
        let as_told = kind.is_prose() != dice.happens(20);
        let begins = if as_told { Begins::Anchor } else { Begins::Shown };
        let style = Style { start: begins, ..Style::default() };
        Manner::Continues(match self {
            Self::Anchor => Style { start: Begins::Anchor, ..style },
            Self::Shown => Style { start: Begins::Shown, ..style },
            Self::Cut => Style { start: Begins::Cut, ..style },
            Self::Announced => Style { before: dice.pick(&ANNOUNCEMENTS), ..style },
            Self::Remark => Style { suffix: dice.pick(&REMARKS), ..style },
            Self::Fenced => Style { fence: Some(kind.fence()), ..style },
            Self::SpaceLost => Style { seam: Seam::SpaceLost, ..style },
            Self::SpaceAdded => Style { seam: Seam::SpaceAdded(dice.pick(&[" ", "\n", "\n\n"])), ..style },
            Self::Rewritten => Style { seam: Seam::WordRewritten, ..style },
            Self::CutAgain => Style { stops_after: Some(dice.range(60, 160)), ..style },
            Self::Anew => Style { start: Begins::Document, ..style },
            Self::AboutTheCut | Self::AgainShort | Self::AgainOther => {
                return Manner::Says(dice.pick(&ABOUT_THE_CUT));
            }
            Self::Nothing => return Manner::Says(dice.pick(&NOTHING)),
            Self::Reasons => Style { before: dice.pick(&REASONS), ..style },
            Self::Loops => return Manner::Loops(dice.pick(&LOOPS)),
        })
    }

    /// The model's answer to a repeated question, if it differs from the document.
    pub(super) fn repeated_answer(self, dice: &mut Dice) -> Option<RepeatedReply> {
        match self {
            Self::AgainShort => Some(RepeatedReply::Says(dice.pick(&SHORT))),
            Self::AgainOther => Some(RepeatedReply::Says(dice.pick(&OTHER))),
            _ => None,
        }
    }
}
