//! Which changed paths a set of protected paths is about: those that a pattern covers, and those that reach a protected
//! path through a symlink or a submodule.
//!
//! Neighbours: `protect` matches paths, `candidate` restores what is found here, `diff` lists it. A symlink is followed only
//! in git's trees, never on the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use towline_core::Commit;

use crate::git::{Git, records};
use crate::git_dir::ObjectFormat;
use crate::paths::from_bytes;
use crate::raw_diff::{Changed, Changes, is, tree_entries};
use crate::tree::{Files, Mode, TrackedFile, read_proven};
use crate::{Protect, WorkspaceError};

/// How many symlinks are followed from one path before it counts as a loop.
const MOST_HOPS: usize = 40;

/// Where git keeps the addresses of submodules.
const SUBMODULES_FILE: &[u8] = b".gitmodules";

/// The changed paths that are protected. The changes are those since `base`.
pub(crate) fn protected<'a>(
    git: &Git,
    base: &Commit,
    changes: &'a Changes,
    protect: &Protect,
) -> Result<BTreeSet<&'a [u8]>, WorkspaceError> {
    let paths = || changes.keys().map(Vec::as_slice);
    let mut found: BTreeSet<&[u8]> = paths().filter(|path| protect.covers(from_bytes(path))).collect();
    if changes.is_empty() {
        return Ok(found);
    }
    let listing = git.command("ls-tree").args(["-r", "-z", "--full-tree", base.as_str()]).run()?;
    let is_special = |side| is(side, Mode::Symlink) || is(side, Mode::Submodule);
    let leads_somewhere = |line: &[u8]| line.starts_with(b"120000") || line.starts_with(b"160000");
    if !records(&listing).any(leads_somewhere) && !changes.values().any(|changed| is_special(&changed.after))
    {
        return Ok(found);
    }
    let guard = Guard::new(git, &listing, changes, protect)?;
    found.extend(
        changes
            .iter()
            .filter(|(path, changed)| guard.reaches(path, changed))
            .map(|(path, _)| path.as_slice()),
    );
    Ok(found)
}

/// Trees before and after the changes, and what is protected in them.
struct Guard<'a> {
    protect: &'a Protect,
    before: Tree,
    after: Tree,
    has_protected_submodule: bool,
}

impl<'a> Guard<'a> {
    fn new(
        git: &Git,
        listing: &[u8],
        changes: &Changes,
        protect: &'a Protect,
    ) -> Result<Self, WorkspaceError> {
        let before: Files = tree_entries(listing).collect();
        let mut after = before.clone();
        for (path, changed) in changes {
            match &changed.after {
                Some(entry) => after.insert(path.clone(), entry.clone()),
                None => after.remove(path),
            };
        }
        let names_it =
            |path: &[u8]| protect.covers(from_bytes(path)) || protect.is_named_below(from_bytes(path));
        let has_protected_submodule =
            before.iter().any(|(path, entry)| entry.mode == Mode::Submodule && names_it(path));
        let texts = symlink_texts(git, before.values().chain(after.values()))?;
        Ok(Self {
            protect,
            before: Tree::new(before, &texts),
            after: Tree::new(after, &texts),
            has_protected_submodule,
        })
    }

    /// Whether a change of this path changes something protected, although no pattern covers the path.
    fn reaches(&self, path: &[u8], changed: &Changed) -> bool {
        let covers = |path: &[u8]| self.protect.covers(from_bytes(path));
        (path == SUBMODULES_FILE && self.has_protected_submodule)
            || self.before.other_names(path).iter().any(|name| covers(name))
            || (is(&changed.before, Mode::Symlink) && self.before.leads_to(path, self.protect, |name, _| covers(name)))
            // A new name for what is protected anyway changes nothing.
            || (is(&changed.after, Mode::Symlink)
                && self.after.leads_to(path, self.protect, |name, real| covers(name) && !covers(real)))
            || ((is(&changed.before, Mode::Submodule) || is(&changed.after, Mode::Submodule))
                && self.protect.is_named_below(from_bytes(path)))
    }
}

/// Where a symlink leads.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    /// To this path of the repository, which may be empty for its root.
    Inside(Vec<u8>),
    /// Out of the repository, or round in a circle.
    Outside,
}

/// The paths of a tree, and where its symlinks lead.
struct Tree {
    paths: BTreeSet<Vec<u8>>,
    symlinks: BTreeMap<Vec<u8>, Destination>,
}

impl Tree {
    fn new(entries: Files, texts: &HashMap<String, Vec<u8>>) -> Self {
        let symlinks = entries.iter().filter(|(_, entry)| entry.mode == Mode::Symlink);
        let texts: BTreeMap<Vec<u8>, &[u8]> = symlinks
            .map(|(path, entry)| (path.clone(), texts.get(&entry.id).map_or(&b"/"[..], Vec::as_slice)))
            .collect();
        let symlinks = texts.keys().map(|path| (path.clone(), destination(path, &texts))).collect();
        Self { paths: entries.into_keys().collect(), symlinks }
    }

    /// The names that a path also has, through symlinks.
    fn other_names(&self, path: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let mut pending = vec![path.to_vec()];
        while let Some(name) = pending.pop() {
            for (symlink, destination) in &self.symlinks {
                if let Destination::Inside(target) = destination
                    && let Some(rest) = below(&name, target)
                    // A symlink to a directory that it is in gives everything there names without end.
                    && below(symlink, target).is_none()
                {
                    let other = join(symlink, rest);
                    if names.len() < MOST_HOPS && names.insert(other.clone()) {
                        pending.push(other);
                    }
                }
            }
        }
        names
    }

    /// Whether a symlink leads to a path for which `counts` holds, given its name through the symlink and its real one. Outside of
    /// the repository everything is possible that a pattern could match.
    fn leads_to(&self, symlink: &[u8], protect: &Protect, counts: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        match self.symlinks.get(symlink) {
            None | Some(Destination::Outside) => protect.may_be_below(from_bytes(symlink)),
            Some(Destination::Inside(target)) => {
                let from = self.paths.range(target.clone()..).take_while(|path| path.starts_with(target));
                from.filter_map(|path| Some((path, below(path, target)?)))
                    .any(|(path, rest)| counts(&join(symlink, rest), path))
            }
        }
    }
}

/// A path from a directory that it is in, or empty for the directory itself. Everything is in the root, which is empty.
fn below<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(directory)? {
        rest if directory.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix(b"/"),
    }
}

fn join(directory: &[u8], rest: &[u8]) -> Vec<u8> {
    if rest.is_empty() { directory.to_vec() } else { [directory, b"/", rest].concat() }
}

/// Follows a symlink within a tree, given the texts of all symlinks there.
fn destination(symlink: &[u8], texts: &BTreeMap<Vec<u8>, &[u8]>) -> Destination {
    let parts = |path: &[u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let mut place: Vec<Vec<u8>> = Vec::new();
    let mut pending: VecDeque<Vec<u8>> = parts(symlink).into();
    let mut hops = 0;
    while let Some(part) = pending.pop_front() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." if place.pop().is_none() => return Destination::Outside,
            b".." => continue,
            _ => place.push(part),
        }
        if let Some(text) = texts.get(&place.join(&b'/')) {
            hops += 1;
            if text.starts_with(b"/") || hops > MOST_HOPS {
                return Destination::Outside;
            }
            place.pop();
            parts(text).into_iter().rev().for_each(|part| pending.push_front(part));
        }
    }
    Destination::Inside(place.join(&b'/'))
}

/// What is written in symlinks, by the id of the entry. One whose object is missing is left out.
fn symlink_texts<'a>(
    git: &Git,
    entries: impl Iterator<Item = &'a TrackedFile>,
) -> Result<HashMap<String, Vec<u8>>, WorkspaceError> {
    let symlinks = entries.filter(|entry| entry.mode == Mode::Symlink);
    let ids: BTreeSet<&str> = symlinks.map(|entry| entry.id.as_str()).collect();
    let format = ids.first().map_or_else(Default::default, |id| ObjectFormat::of_id(id));
    read_proven(git, ids.into_iter(), format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::shown;

    fn tree(files: &[&str], symlinks: &[(&str, &str)]) -> Tree {
        let entry = |mode, id: &str| TrackedFile { mode, id: id.into() };
        let files = files.iter().map(|path| ((*path).into(), entry(Mode::File, "f")));
        let symlinks_listed =
            symlinks.iter().map(|(path, text)| ((*path).into(), entry(Mode::Symlink, text)));
        let texts = symlinks.iter().map(|(_, text)| ((*text).into(), (*text).into())).collect();
        Tree::new(files.chain(symlinks_listed).collect(), &texts)
    }

    #[test]
    fn symlinks_are_followed_within_the_tree_and_no_further() {
        let tree = tree(
            &["d/f"],
            &[
                ("a", "d"),
                ("x/b", "../a/f"),
                ("out", "../e"),
                ("root", "/etc"),
                ("loop", "loop"),
                ("up", "x/../."),
            ],
        );
        let inside = |path: &str| Destination::Inside(path.into());
        let expected = [
            ("a", inside("d")),
            ("loop", Destination::Outside),
            ("out", Destination::Outside),
            ("root", Destination::Outside),
            ("up", inside("")),
            ("x/b", inside("d/f")),
        ];
        let found: Vec<(String, Destination)> =
            tree.symlinks.into_iter().map(|(path, to)| (shown(&path), to)).collect();
        assert_eq!(found, expected.map(|(path, to)| (path.to_owned(), to)));
    }

    #[test]
    fn a_path_has_a_name_for_each_way_that_leads_to_it() {
        let tree = tree(&["d/f"], &[("p/q", "../d"), ("r", "p"), ("self", "."), ("d/inner", "../d")]);
        let names: Vec<String> = tree.other_names(b"d/f").iter().map(|name| shown(name)).collect();
        assert_eq!(names, ["p/q/f", "r/q/f"]);
        assert!(tree.other_names(b"other").is_empty());
    }
}
