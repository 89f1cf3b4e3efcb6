//! Texts of agents, models and repositories, made fit for a screen: on one line, without orders to the terminal, and without
//! the secrets that this process [knows](secrets) or what looks like a token. [`printable`] and [`brief`] serve inside a line;
//! every finished line passes [`clean`].

use std::sync::{Arc, LazyLock};

use towline_api::KnownSecrets;
use towline_core::{GoalId, misleads_after};
use towline_mask::Mask;

/// Our own colours: the only orders to a terminal that leave here.
pub(crate) const COLOURS: [&str; 6] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];

/// What is hidden in everything that leaves here.
static SECRETS: LazyLock<KnownSecrets> = LazyLock::new(KnownSecrets::default);

/// The secrets of this process.
pub fn secrets() -> &'static KnownSecrets {
    &SECRETS
}

/// A mask for all known secrets.
pub fn mask() -> Arc<Mask> {
    SECRETS.mask()
}

/// Text that is not ours, fit for a line on a terminal.
pub fn printable(text: &str) -> String {
    SECRETS.printable(text)
}

/// Like [`printable`], and no longer than what people read.
pub fn brief(text: &str) -> String {
    SECRETS.brief(text)
}

/// Lines without any secret, and without any order to the terminal but our colours.
pub fn clean(text: &str) -> String {
    let text = &*mask().text(text);
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = COLOURS.into_iter().find(|colour| rest.starts_with(colour));
        match colour {
            Some(colour) => cleaned.push_str(colour),
            None if misleads_after(cleaned.chars().next_back(), c) && c != '\n' => cleaned.push('\u{fffd}'),
            None => cleaned.push(c),
        }
        rest = &rest[colour.map_or(c.len_utf8(), str::len)..];
    }
    cleaned
}

/// How many of something there are, such as `1 file` and `2 files`.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A goal's id out of a report, as people read it.
pub fn short_id(id: &str) -> String {
    id.parse().map_or_else(|_| id.to_owned(), |id: GoalId| id.short())
}

/// A size as people read it.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1_000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1_000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paint;

    #[test]
    fn characters_that_give_orders_do_not_reach_the_terminal() {
        let hostile = "a\u{1b}[2Jb\rc\u{7}\td\u{9b}e\u{202e}f\u{2066}g\nh\u{200b}\u{e0041}i👩\u{200d}🚀";
        let shown = "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\td\u{fffd}e\u{fffd}f\u{fffd}g";
        let unseen = "h\u{fffd}\u{fffd}i👩\u{200d}🚀";
        assert_eq!(printable(hostile), format!("{shown} {unseen}"));
        assert_eq!(clean(hostile), format!("{shown}\n{unseen}"));
    }

    #[test]
    fn colours_of_ours_leave_and_those_of_others_do_not_get_into_painted_text() {
        let paint = Paint::Colour;
        for colour in [Paint::good, Paint::bad, Paint::warn, Paint::dim, Paint::bold] {
            let painted = colour(paint, "text");
            assert_eq!((clean(&painted), painted.len() > "text".len()), (painted, true));
        }
        assert_eq!(
            clean(&paint.bold("\u{1b}[32mdone\u{1b}[5m")),
            "\u{1b}[1m\u{fffd}[32mdone\u{fffd}[5m\u{1b}[0m"
        );
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        let shown = [0, 999, 1_000, 1_500_000, 999_999, 2_000_000_000].map(bytes);
        assert_eq!(shown, ["0 bytes", "999 bytes", "1.0 KB", "1.5 MB", "1.0 MB", "2.0 GB"]);
    }
}
