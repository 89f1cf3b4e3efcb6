//! Whether two globs can match the same path. In doubt they can.

/// Whether some path matches both globs.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let parts = |glob: &str| -> Vec<String> {
        let glob = glob.trim_start_matches("./").trim_end_matches('/');
        // A directory means everything in it.
        glob.split('/').map(str::to_owned).chain(["**".to_owned()]).collect()
    };
    meet(&parts(one), &parts(other), |part| part == "**", |one, other| names_overlap(one, other))
}

/// Whether some name matches both patterns. Sets and alternatives count as anything.
fn names_overlap(one: &str, other: &str) -> bool {
    let is_open = |name: &str| name.contains(['[', '{', '\\']);
    let is_same = |one: &u8, other: &u8| *one == b'?' || *other == b'?' || one == other;
    is_open(one) || is_open(other) || meet(one.as_bytes(), other.as_bytes(), |byte| *byte == b'*', is_same)
}

/// Whether two sequences can mean the same one, where some items match any number of others.
fn meet<T>(one: &[T], other: &[T], is_any: impl Fn(&T) -> bool, is_same: impl Fn(&T, &T) -> bool) -> bool {
    // From the end: whether what follows these two places can.
    let mut after = vec![vec![false; other.len() + 1]; one.len() + 1];
    for i in (0..=one.len()).rev() {
        for j in (0..=other.len()).rev() {
            let (here, there) = (one.get(i), other.get(j));
            after[i][j] = match (here, there) {
                (None, None) => true,
                (Some(here), _) if is_any(here) => after[i + 1][j] || (there.is_some() && after[i][j + 1]),
                (_, Some(there)) if is_any(there) => after[i][j + 1] || (here.is_some() && after[i + 1][j]),
                (Some(here), Some(there)) => is_same(here, there) && after[i + 1][j + 1],
                _ => false,
            };
        }
    }
    after[0][0]
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn globs_overlap_if_some_path_matches_both() {
        let cases = [
            ("crates/store/**", "crates/store/src/lib.rs", true),
            ("crates/store/**", "crates/core/**", false),
            ("crates/*/src/**", "crates/store/**", true),
            ("crates/store", "crates/store/src/*.rs", true),
            ("**/*.md", "docs/**", true),
            ("*.md", "*.rs", false),
            ("a*c", "ab*", true),
            ("a?c", "abd", false),
            ("src/[ab].rs", "src/c.rs", true),
            ("./docs/", "docs/http.md", true),
            ("**", "anything/at/all", true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(overlap(one, other), expected, "{one} and {other}");
            assert_eq!(overlap(other, one), expected, "{other} and {one}");
        }
    }
}
