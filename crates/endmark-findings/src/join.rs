//! Detects findings that were reported more than once, and joins them. (AR-5)

mod evidence;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::finding::{Cwe, Evidence, Finding};
use super::location::{FileLines, LineRange, Location};
use super::transcript::{FindingState, alphanumeric_key};
pub(super) use evidence::{ALSO_TITLED, add_titles, distinct_pieces, join_fields, join_text};

/// A finding of one agent that may be joined with others.
#[derive(Debug, Clone)]
pub(super) struct GroupMember {
    pub(super) agent: Option<String>,
    /// The index of its result among all results.
    pub(super) result: usize,
    pub(super) finding: Finding,
    pub(super) state: FindingState,
}

impl GroupMember {
    fn is_truncated(&self) -> bool {
        self.state == FindingState::Truncated || self.finding.originally_truncated
    }

    /// Whether the finding has no CWE number or no location.
    fn lacks_cwe_or_location(&self) -> bool {
        self.finding.cwe.is_empty() || self.finding.location.is_none()
    }

    /// Whether the finding may have been cut before the line numbers of its location.
    fn may_lack_lines(&self) -> bool {
        self.state == FindingState::Truncated
            && !self.finding.location.as_ref().is_some_and(Location::has_lines)
    }

    /// Whether two findings with the same source and sink, from different results, may be the same. One must be cut
    /// or both must have the same title, and neither weakness nor location may contradict.
    fn may_repeat(&self, other: &Self) -> bool {
        let is_cut = |member: &Self| member.state == FindingState::Truncated;
        // Two missing titles count as the same title.
        let has_same_title = alphanumeric_key(&self.finding.title) == alphanumeric_key(&other.finding.title);
        let (own, others) = (&self.finding.cwe, &other.finding.cwe);
        let may_share_cwe = own.is_empty() || others.is_empty() || own.iter().any(|cwe| others.contains(cwe));
        let may_share_place = match (&self.finding.location, &other.finding.location) {
            (None, _) | (_, None) => true,
            (Some(own), Some(other)) => {
                let continues_own_words = || {
                    has_same_title
                        && other
                            .alphanumeric_key()
                            .unwrap_or_default()
                            .starts_with(&own.alphanumeric_key().unwrap_or_default())
                };
                own.is_same_place(other) || self.may_lack_lines() && continues_own_words()
            }
        };
        (is_cut(self) || is_cut(other) || has_same_title) && may_share_cwe && may_share_place
    }
}

/// Joins the values of a field of all members.
fn join_field(members: &[&GroupMember], field: impl Fn(&Finding) -> Option<&str>) -> Option<String> {
    join_text(members.iter().filter_map(|member| Some((field(&member.finding)?, member.is_truncated()))))
}

/// The lines of a finding in a file, and the index of its member.
type MemberLines = (Option<LineRange>, usize);

/// The place of a weakness. Findings must share one to be joined.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum WeaknessPlace<'a> {
    /// A file in which the finding has line numbers.
    File(&'a str),
    /// The words of a location without line numbers. If they name no file (`the whole application`), the title must
    /// match too, or source and sink.
    Words(String, Option<&'a str>, String),
}

/// Returns the places of a member, each with its line numbers.
fn weakness_places(member: &GroupMember) -> Vec<(WeaknessPlace<'_>, Option<LineRange>)> {
    let Some(location) = &member.finding.location else { return Vec::new() };
    if location.has_lines() {
        let places = location.places().iter().filter(|place| place.lines.is_some());
        return places.map(|place| (WeaknessPlace::File(&place.file), place.lines)).collect();
    }
    let Some(words) = location.alphanumeric_key() else { return Vec::new() };
    let words = |source, besides| (WeaknessPlace::Words(words.clone(), source, besides), None);
    if !location.places().is_empty() {
        return vec![words(None, String::new())];
    }
    let title = Some(alphanumeric_key(&member.finding.title)).filter(|title| !title.is_empty());
    let titled = title.map(|title| words(None, title));
    titled
        .into_iter()
        .chain(flow_key(member).map(|(_, source, sink)| words(Some(source), sink.to_owned())))
        .collect()
}

/// Groups members that are the same finding: they share a weakness and have overlapping places. Members from several
/// results of one agent are also grouped if one lacks its weakness, location or lines, and nothing contradicts (see
/// `join_incomplete`).
pub(super) fn group_members(members: &[GroupMember]) -> Vec<Vec<usize>> {
    let mut sets = DisjointSets::new(members.len());
    join_by_cwe(members, &mut sets);
    join_incomplete(members, &mut sets);
    // A joined finding has the weaknesses of all its members, and may therefore match further ones. Repeat until no
    // more are joined, so that merging the output again changes nothing.
    let mut count = usize::MAX;
    while sets.count_sets() < count {
        count = sets.count_sets();
        join_by_cwe(members, &mut sets);
    }
    sets.into_groups()
}

/// Joins members with overlapping places and a common weakness, which may come from another member of the same set.
fn join_by_cwe(members: &[GroupMember], sets: &mut DisjointSets) {
    let roots: Vec<usize> = (0..members.len()).map(|at| sets.find_root(at)).collect();
    let mut cwes_by_set: HashMap<usize, BTreeSet<u32>> = HashMap::new();
    for (member, root) in members.iter().zip(&roots) {
        cwes_by_set.entry(*root).or_default().extend(member.finding.cwe.iter().map(|cwe| cwe.0));
    }
    let mut by_cwe: BTreeMap<(u32, WeaknessPlace<'_>), Vec<MemberLines>> = BTreeMap::new();
    for (at, (member, root)) in members.iter().zip(&roots).enumerate() {
        for cwe in cwes_by_set.get(root).into_iter().flatten() {
            for (spot, lines) in weakness_places(member) {
                by_cwe.entry((*cwe, spot)).or_default().push((lines, at));
            }
        }
    }
    for items in by_cwe.into_values() {
        sets.join_overlapping(items);
    }
}

/// Agent, source and sink.
type FlowKey<'a> = (Option<&'a str>, &'a str, &'a str);

fn flow_key(member: &GroupMember) -> Option<FlowKey<'_>> {
    Some((member.agent.as_deref(), member.finding.source.as_deref()?, member.finding.sink.as_deref()?))
}

/// The maximum number of candidates with the same source and sink that are compared.
const MAX_CANDIDATES: usize = 64;

/// Joins a member that lacks its weakness, location or lines with a matching one. Both must come from different
/// results of the same agent, have the same source and sink, and not contradict. Findings of the same result are never
/// joined, because a result does not repeat a finding.
fn join_incomplete(members: &[GroupMember], sets: &mut DisjointSets) {
    let (mut lacking, whole): (Vec<usize>, Vec<usize>) =
        (0..members.len()).partition(|at| members[*at].lacks_cwe_or_location());
    // A member without a location could match several sets. It joins only one, so that it does not connect them.
    lacking.sort_by_key(|at| members[*at].finding.location.is_none());
    let mut known: HashMap<FlowKey<'_>, Vec<usize>> = HashMap::new();
    for at in &whole {
        if let Some(flow) = flow_key(&members[*at]) {
            known.entry(flow).or_default().push(*at);
        }
    }
    let alone = sets.find_singletons();
    let cut = whole.into_iter().filter(|at| alone[*at] && members[*at].may_lack_lines());
    for at in cut.chain(lacking) {
        let member = &members[at];
        let Some(candidates) = flow_key(member).map(|flow| known.entry(flow).or_default()) else { continue };
        let mut own = HashSet::new();
        for other in candidates.iter().take(MAX_CANDIDATES).filter(|at| members[**at].result == member.result)
        {
            own.insert(sets.find_root(*other));
        }
        let mut others = candidates.iter().take(MAX_CANDIDATES);
        let found = others
            .find(|other| member.may_repeat(&members[**other]) && !own.contains(&sets.find_root(**other)));
        if let Some(other) = found {
            sets.join(at, *other);
        }
        if member.lacks_cwe_or_location() {
            candidates.push(at);
        }
    }
}

/// Disjoint sets (union-find).
struct DisjointSets {
    parents: Vec<usize>,
}

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    fn find_root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find_root(one), self.find_root(other));
        // The earlier root stays, so that groups are in the order of their first members.
        self.parents[one.max(other)] = one.min(other);
    }

    /// Returns the number of disjoint sets.
    fn count_sets(&mut self) -> usize {
        (0..self.parents.len()).filter(|at| self.find_root(*at) == *at).count()
    }

    /// Returns for each member whether it is the only one in its set.
    fn find_singletons(&mut self) -> Vec<bool> {
        let roots: Vec<usize> = (0..self.parents.len()).map(|at| self.find_root(at)).collect();
        let mut sizes = vec![0_usize; roots.len()];
        for root in &roots {
            sizes[*root] += 1;
        }
        roots.iter().map(|root| sizes[*root] == 1).collect()
    }

    /// Joins members of one file with overlapping lines. A member without lines overlaps only with others without
    /// lines.
    fn join_overlapping(&mut self, mut items: Vec<(Option<LineRange>, usize)>) {
        items.sort_unstable();
        let mut last: Option<(Option<u32>, usize)> = None;
        for (lines, at) in items {
            let joined = match (last, lines) {
                (Some((None, before)), None) => Some((None, before)),
                (Some((Some(end), before)), Some(lines)) if lines.start <= end => {
                    Some((Some(end.max(lines.end)), before))
                }
                _ => None,
            };
            if let Some((_, before)) = joined {
                self.join(before, at);
            }
            last = Some(joined.map_or((lines.map(|lines| lines.end), at), |(end, _)| (end, at)));
        }
    }

    fn into_groups(mut self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.parents.len() {
            groups.entry(self.find_root(at)).or_default().push(at);
        }
        groups.into_values().collect()
    }
}

/// Joins the members of a group. The base is the most complete and most severe member; it gets the evidence of all
/// others (AR-5). Returns the finding and its other titles.
pub(super) fn join_group(mut members: Vec<&GroupMember>) -> Option<(Finding, Vec<String>)> {
    members.sort_by_cached_key(|member| {
        let severity = member.finding.severity.clone();
        (
            member.is_truncated(),
            severity.is_none(),
            severity,
            member.finding.file_lines().first().cloned(),
            member.finding.title.clone(),
            member.agent.clone(),
            member.result,
        )
    });
    let mut finding = members.first()?.finding.clone();
    if members.len() > 1 {
        let findings = || members.iter().map(|member| &member.finding);
        finding.severity = findings().filter_map(|finding| finding.severity.clone()).min();
        finding.source = join_field(&members, |finding| finding.source.as_deref());
        finding.sink = join_field(&members, |finding| finding.sink.as_deref());
        finding.flow = join_field(&members, |finding| finding.flow.as_deref());
        finding.cwe = join_weaknesses(findings());
        finding.location = join_locations(&members).or(finding.location);
        finding.evidence = join_evidence(&members);
        let others = members
            .iter()
            .flat_map(|member| member.finding.other.iter().map(|field| (field, member.is_truncated())));
        finding.other = join_fields(others);
    }
    // Only a complete finding of the same agent clears the mark. Another agent's finding proves nothing about the cut.
    let whole = members.iter().filter(|member| !member.is_truncated());
    let whole: HashSet<&Option<String>> = whole.map(|member| &member.agent).collect();
    finding.originally_truncated =
        members.iter().any(|member| member.is_truncated() && !whole.contains(&member.agent));
    let mut known = HashSet::from([finding.title.as_str(), ""]);
    let titles = members.iter().map(|member| member.finding.title.as_str());
    let titles = titles.filter(|title| known.insert(title)).map(str::to_owned).collect();
    Some((finding, titles))
}

/// Returns all weaknesses: in the order of a finding that has all of them, otherwise in numerical order.
fn join_weaknesses<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> Vec<Cwe> {
    let all: BTreeSet<Cwe> = findings.clone().flat_map(|finding| finding.cwe.iter().copied()).collect();
    let mut complete_lists = findings.map(|finding| &finding.cwe).filter(|own| own.len() == all.len());
    complete_lists.next().cloned().unwrap_or_else(|| all.into_iter().collect())
}

/// Returns all places, with overlapping ones merged. A location is kept as written if all members agree, or if it
/// contains other words, such as a route.
fn join_locations(members: &[&GroupMember]) -> Option<Location> {
    let locations =
        members.iter().filter_map(|member| Some((member.finding.location.as_ref()?, member.is_truncated())));
    let texts = distinct_pieces(locations.map(|(location, is_cut)| (location.as_str(), is_cut)));
    let mut all: Vec<Location> = texts.into_iter().filter_map(Location::read).collect();
    let mut known = HashSet::new();
    all.retain(|location| location.has_lines() || known.insert(location.alphanumeric_key()));
    if let [only] = &all[..] {
        return Some(only.clone());
    }
    let (in_words, others): (Vec<Location>, Vec<Location>) =
        all.into_iter().partition(Location::has_other_words);
    let locations: HashSet<&FileLines> = in_words.iter().flat_map(Location::places).collect();
    let others =
        merge_places(others.iter().flat_map(Location::places).filter(|place| !locations.contains(place)));
    if in_words.is_empty() {
        return others;
    }
    let texts = in_words.iter().chain(&others).map(Location::as_str);
    Location::read(&texts.collect::<Vec<_>>().join("; "))
}

/// Returns the places, with overlapping ones merged.
fn merge_places<'a>(places: impl Iterator<Item = &'a FileLines>) -> Option<Location> {
    let mut places: Vec<FileLines> = places.cloned().collect();
    places.sort_unstable();
    places.dedup();
    let mut merged: Vec<FileLines> = Vec::new();
    for place in places {
        match (merged.last_mut(), place.lines) {
            (Some(FileLines { file, lines: Some(last) }), Some(lines))
                if *file == place.file && lines.start <= last.end =>
            {
                *last = last.union(lines);
            }
            _ => merged.push(place),
        }
    }
    Location::from_places(merged)
}

/// Joins all evidence with a blank line between pieces. Evidence contained in another piece is dropped.
fn join_evidence(members: &[&GroupMember]) -> Option<Evidence> {
    let pieces = members
        .iter()
        .filter_map(|member| Some((member.finding.evidence.as_ref()?.as_str(), member.is_truncated())));
    Evidence::new(&distinct_pieces(pieces).join("\n\n"))
}
