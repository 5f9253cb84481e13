//! How models answer a prompt for the rest of their reply.

use testkit::{ContinuationStart, ContinuationStyle, ModelBehaviour, RepeatedReply, SeamDeviation};

use super::documents::DocumentKind;
use super::random::Random;

/// A type of answer. The printed table has one row for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Behaviour {
    RepeatsAnchor,
    ContinuesAfterQuote,
    ContinuesAtCut,
    AnnouncesRest,
    AddsRemark,
    FencesRest,
    LosesSpace,
    AddsSpace,
    RewritesLastWord,
    IsCutAgain,
    StartsOver,
    TalksAboutCut,
    ClaimsToBeDone,
    ThinksAloud,
    Loops,
    RestartsShort,
    RestartsOtherwise,
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
const REPLIES_ABOUT_THE_CUT: [&str; 7] = [
    "It looks like my last reply was cut off. Could you tell me where I should go on?",
    "It seems that my previous message was interrupted. Please share the last part so that I can continue.",
    "I'm sorry, but I can't see the text that you are referring to.",
    "I apologize for the confusion. Could you please provide more context?",
    "Could you clarify what you would like me to continue?",
    "My last reply ended in the middle of a sentence. Would you like me to start over?",
    "Sorry, I cannot help with that.",
];
const THOUGHTS: [&str; 6] = [
    "<think>Go on from there.</think>",
    "<think>\nThe user wants the rest of it.\n</think>\n\n",
    "<thinking>Where was I?</thinking>\n",
    "<reasoning>I was cut off and go on.</reasoning>",
    "<seed:think>The rest follows.</seed:think>",
    "◁think▷I go on.◁/think▷",
];
const LOOPS: [&str; 4] =
    ["and so on ", "The harbour was quiet.\n", "{\"id\": 1, \"name\": \"gull\"}, ", "- one more\n"];
const SHORT_REPLIES: [&str; 4] = ["Sure!", "Here you are.", "{}", "Done."];
/// Documents that differ from the requested one.
const OTHER_DOCUMENTS: [&str; 4] = [
    "The committee met on Tuesday and discussed the budget at length. Nobody was content with it, and the meeting was closed.",
    "# Minutes\n\n- The budget was discussed.\n- Nobody was content.\n",
    "{\"title\": \"Minutes\", \"items\": [{\"id\": 900, \"name\": \"budget\", \"open\": true}], \"total\": 1}",
    "{\"id\": 900, \"name\": \"budget\"}\n{\"id\": 901, \"name\": \"roof\"}\n",
];
const CLAIMS_TO_BE_DONE: [&str; 4] = [
    "(nothing further)",
    "There is nothing left to add; the reply was already complete.",
    "[end of reply]",
    "The text above is complete.",
];

impl Behaviour {
    pub(super) const ALL: [Self; 13] = [
        Self::RepeatsAnchor,
        Self::ContinuesAfterQuote,
        Self::ContinuesAtCut,
        Self::AnnouncesRest,
        Self::AddsRemark,
        Self::FencesRest,
        Self::LosesSpace,
        Self::AddsSpace,
        Self::RewritesLastWord,
        Self::IsCutAgain,
        Self::StartsOver,
        Self::TalksAboutCut,
        Self::ClaimsToBeDone,
    ];

    /// Behaviours of confused models, and of models that think aloud.
    pub(super) const CONFUSED: [Self; 4] =
        [Self::ThinksAloud, Self::Loops, Self::RestartsShort, Self::RestartsOtherwise];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RepeatsAnchor => "begins with the anchor",
            Self::ContinuesAfterQuote => "goes on behind what is shown",
            Self::ContinuesAtCut => "goes on from the cut",
            Self::AnnouncesRest => "announces the rest",
            Self::AddsRemark => "adds a closing remark",
            Self::FencesRest => "fences the rest",
            Self::LosesSpace => "loses white space",
            Self::AddsSpace => "adds white space",
            Self::RewritesLastWord => "rewrites the last word",
            Self::IsCutAgain => "is cut again",
            Self::StartsOver => "begins anew",
            Self::TalksAboutCut => "talks about the cut",
            Self::ClaimsToBeDone => "says that there is no more",
            Self::ThinksAloud => "thinks before the rest",
            Self::Loops => "repeats itself without end",
            Self::RestartsShort => "begins anew with something short",
            Self::RestartsOtherwise => "begins anew with other values",
        }
    }

    /// Whether the answer contains the exact bytes after the quoted part.
    pub(super) fn keeps_the_bytes(self) -> bool {
        match self {
            Self::RepeatsAnchor
            | Self::ContinuesAfterQuote
            | Self::AnnouncesRest
            | Self::AddsRemark
            | Self::FencesRest
            | Self::LosesSpace
            | Self::AddsSpace
            | Self::IsCutAgain
            | Self::StartsOver
            | Self::ThinksAloud => true,
            Self::ContinuesAtCut
            | Self::RewritesLastWord
            | Self::TalksAboutCut
            | Self::ClaimsToBeDone
            | Self::Loops
            | Self::RestartsShort
            | Self::RestartsOtherwise => false,
        }
    }

    /// Whether a model can behave this way for a document of this kind.
    pub(super) fn suits(self, kind: DocumentKind) -> bool {
        self != Self::RewritesLastWord || kind.is_prose()
    }

    /// Returns this behaviour as an instruction to the scripted model, with random details.
    pub(super) fn manner(self, kind: DocumentKind, dice: &mut Random) -> ModelBehaviour {
        // Usually the model follows the prompt: it repeats the quoted part of a text, but not of JSON.
        let as_told = kind.is_prose() != dice.chance(20);
        let begins = if as_told { ContinuationStart::Anchor } else { ContinuationStart::Shown };
        let style = ContinuationStyle { start: begins, ..ContinuationStyle::default() };
        ModelBehaviour::Continues(match self {
            Self::RepeatsAnchor => ContinuationStyle { start: ContinuationStart::Anchor, ..style },
            Self::ContinuesAfterQuote => ContinuationStyle { start: ContinuationStart::Shown, ..style },
            Self::ContinuesAtCut => ContinuationStyle { start: ContinuationStart::Cut, ..style },
            Self::AnnouncesRest => ContinuationStyle { prefix: dice.pick(&ANNOUNCEMENTS), ..style },
            Self::AddsRemark => ContinuationStyle { suffix: dice.pick(&REMARKS), ..style },
            Self::FencesRest => ContinuationStyle { fence: Some(kind.fence()), ..style },
            Self::LosesSpace => ContinuationStyle { seam: SeamDeviation::MissingSpace, ..style },
            Self::AddsSpace => ContinuationStyle {
                seam: SeamDeviation::AddedSpace(dice.pick(&[" ", "\n", "\n\n"])),
                ..style
            },
            Self::RewritesLastWord => ContinuationStyle { seam: SeamDeviation::OtherWord, ..style },
            Self::IsCutAgain => ContinuationStyle { stops_after: Some(dice.range(60, 160)), ..style },
            Self::StartsOver => ContinuationStyle { start: ContinuationStart::Document, ..style },
            Self::TalksAboutCut | Self::RestartsShort | Self::RestartsOtherwise => {
                return ModelBehaviour::FixedText(dice.pick(&REPLIES_ABOUT_THE_CUT));
            }
            Self::ClaimsToBeDone => return ModelBehaviour::FixedText(dice.pick(&CLAIMS_TO_BE_DONE)),
            Self::ThinksAloud => ContinuationStyle { prefix: dice.pick(&THOUGHTS), ..style },
            Self::Loops => return ModelBehaviour::Loops(dice.pick(&LOOPS)),
        })
    }

    /// Returns the model's answer to the repeated request, if it differs from the document.
    pub(super) fn repeated_answer(self, dice: &mut Random) -> Option<RepeatedReply> {
        match self {
            Self::RestartsShort => Some(RepeatedReply::FixedText(dice.pick(&SHORT_REPLIES))),
            Self::RestartsOtherwise => Some(RepeatedReply::FixedText(dice.pick(&OTHER_DOCUMENTS))),
            _ => None,
        }
    }
}
