//! What a result and its findings come to where they end.

use super::super::Remarks;
use super::super::draft::{Draft, Finished};
use super::super::table::told_once;
use super::{Block, JsonEnd};
use crate::stand_in::is_placeholder;
use crate::{AgentResult, Checkpoint, Cut, Position, RemarkKind};

impl Block {
    /// Ends the finding that is open; `is_ended` says that something has come behind it.
    pub(super) fn finish_draft(&mut self, is_ended: bool, remarks: &mut Remarks) {
        self.is_disowned = false;
        let Some(mut draft) = self.draft.take() else { return };
        if !is_ended && draft.evidence().is_some_and(|evidence| evidence.is_open()) {
            draft.is_ended_by_blank = false;
        }
        self.finished(draft, is_ended, false, remarks);
    }

    /// Takes what a finding has come to.
    pub(super) fn finished(
        &mut self,
        mut draft: Draft,
        is_ended: bool,
        of_table: bool,
        remarks: &mut Remarks,
    ) {
        // Where the text stops, the finding may have been to say another one.
        if let Some(section) = self.section.as_ref().filter(|_| is_ended) {
            draft.stands_under(&section.severity);
        }
        match draft.finish(is_ended) {
            Finished::Template(position) => {
                self.templates += 1;
                remarks.add(RemarkKind::Template, "[F…]", position);
            }
            Finished::Finding(finding, said) => {
                self.push(*finding, of_table);
                for (kind, text, position) in said {
                    remarks.add(kind, &text, position);
                }
            }
        }
    }

    /// The result; none if it is a template.
    pub(in super::super) fn finish(
        mut self,
        is_whole: bool,
        ends: Position,
        checkpoint: Option<Checkpoint>,
        remarks: &mut Remarks,
    ) -> Option<AgentResult> {
        self.finish_draft(is_whole, remarks);
        self.drop_overview();
        self.count_mentioned(remarks);
        // Some models keep the brackets of the id that they fill in.
        let is_template = self.findings.is_empty()
            && (self.templates > 0
                || self.header.is_agent_open
                || self.header.agent_id.as_deref().is_some_and(is_placeholder));
        if is_template {
            return None;
        }
        self.header.unescape(&mut self.findings);
        let header = self.header;
        let is_whole = is_whole && self.turns.cut_at.is_none();
        // Where the result is cut as well, it was cut there, and what was to come is not known to have been a finding.
        let is_all_there = header.declared.is_some_and(|declared| self.findings.len() >= declared as usize);
        self.broken += u32::from(self.json == JsonEnd::Open && is_whole && !is_all_there);
        let cut = match (is_whole, &header.agent_id) {
            (true, _) => Cut::Whole,
            (false, Some(_)) => Cut::Mild,
            (false, None) => Cut::Severe,
        };
        if is_whole && header.agent_id.is_none() {
            remarks.add(RemarkKind::NoAgent, "===AGENT_RESULT===", self.begins);
        }
        let discarded = if cut == Cut::Severe { self.ids.count } else { 0 };
        let findings = if cut == Cut::Severe { Vec::new() } else { told_once(self.findings, &self.of_table) };
        Some(AgentResult {
            agent_id: header.agent_id,
            dimensions: header.dimensions.unwrap_or_default(),
            declared_findings: header.declared,
            findings,
            discarded,
            // Behind findings that could be read, it is a summary of them.
            unread: self.broken + if self.ids.count == 0 { self.unread } else { 0 },
            cut,
            begins: Some(self.begins),
            ends: self.turns.cut_at.unwrap_or(ends),
            checkpoint,
            numbers: self.ids,
        })
    }
}
