//! The name that someone probably meant.

/// The candidate nearest to what was written, if one is near enough to be a slip. Case does not count.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near_enough = written.chars().count().div_ceil(3);
    let written = written.to_lowercase();
    let length = written.chars().count();
    candidates
        .into_iter()
        // At least as many slips as the one is longer than the other: what is far longer is not even compared.
        .filter(|candidate| length.abs_diff(candidate.chars().count()) <= near_enough)
        .map(|candidate| (distance(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= near_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many single slips (a character too many, too few, wrong, or swapped with the next) lie between two words.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let wrong = usize::from(one[i - 1] != other[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + wrong);
            let swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if swapped {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_slips() {
        let pairs =
            [("checks", "checks"), ("chekcs", "checks"), ("check", "checks"), ("", "abc"), ("ab", "xy")];
        assert_eq!(pairs.map(|(one, other)| distance(one, other)), [0, 1, 1, 3, 2]);
    }

    #[test]
    fn only_what_could_be_a_slip_is_suggested() {
        let known = ["checks", "budget", "agents"];
        let suggested = ["chekcs", "Budgets", "AGENTS", "zzz", ""].map(|written| nearest(written, known));
        assert_eq!(suggested, [Some("checks"), Some("budget"), Some("agents"), None, None]);
    }
}
