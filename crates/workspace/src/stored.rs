//! Which objects our own repository has itself. One that it only borrows can go at any time: `git gc --prune=now` in the
//! user's repository removes what no ref there has, and git does not write an object again that it can borrow.

use std::fs;
use std::path::Path;

use crate::WorkspaceError;

/// More than the index of any pack.
const LARGEST: u64 = 1024 * 1024 * 1024;

/// The parts of the index of a pack: its mark and version, how many ids begin with which byte, and the ids in their order.
const HEADER: &[u8] = b"\xfftOc\0\0\0\x02";
const COUNTS: usize = 256 * 4;

/// The first of these objects, listed as `<id> <path>`, that is not in the directory but at most where it borrows from.
pub(crate) fn first_missing<'a>(
    objects: &Path,
    listing: impl Iterator<Item = &'a str>,
) -> Result<Option<&'a str>, WorkspaceError> {
    let id = |line: &'a str| line.split(' ').next().unwrap_or(line);
    let is_loose = |id: &str| {
        let (directory, name) = id.split_at(id.len().min(2));
        objects.join(directory).join(name).is_file()
    };
    let mut packed = listing.filter(|line| !is_loose(id(line))).peekable();
    if packed.peek().is_none() {
        return Ok(None);
    }
    let indexes = indexes(&objects.join("pack"))?;
    Ok(packed.find(|line| !indexes.iter().any(|index| lists(index, id(line)))))
}

/// The indexes of all packs.
fn indexes(packs: &Path) -> Result<Vec<Vec<u8>>, WorkspaceError> {
    let mut indexes = Vec::new();
    for entry in fs::read_dir(packs).map_err(WorkspaceError::io("read", packs))? {
        let path = entry.map_err(WorkspaceError::io("read", packs))?.path();
        if path.extension().is_some_and(|end| end == "idx") && path.with_extension("pack").is_file() {
            indexes.push(towline_files::read(&path, LARGEST).map_err(WorkspaceError::io("read", &path))?);
        }
    }
    Ok(indexes)
}

/// Whether an index has an id.
fn lists(index: &[u8], id: &str) -> bool {
    entries_like(index, id)
        .is_some_and(|(entries, id)| entries.chunks_exact(id.len()).any(|entry| entry == id))
}

/// The ids in an index that begin like this one, and the id as it would be among them.
fn entries_like<'a>(index: &'a [u8], id: &str) -> Option<(&'a [u8], Vec<u8>)> {
    let id = bytes_of(id)?;
    let first = usize::from(*id.first()?);
    let (counts, ids) = index.strip_prefix(HEADER)?.split_at_checked(COUNTS)?;
    let count = |byte: usize| {
        let count = counts.get(byte * 4..byte * 4 + 4)?;
        Some(count.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)))
    };
    let start = if first == 0 { 0 } else { count(first - 1)? };
    Some((ids.get(start * id.len()..count(first)? * id.len())?, id))
}

fn bytes_of(id: &str) -> Option<Vec<u8>> {
    let pairs = id.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
