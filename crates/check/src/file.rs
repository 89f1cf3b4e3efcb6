//! The check that a file is there, and that its text matches.
//!
//! The candidate is the agent's work, so nothing in it is trusted: a symlink may lead anywhere, and a file may be of any
//! size.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use crate::evidence;
use crate::finding::Finding;

/// The largest file whose text is searched.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Looks at the file at `path` in the checkout. Without a pattern it is enough that it is there.
pub(crate) fn look(checkout: &Path, path: &str, pattern: Option<&Regex>) -> Finding {
    let found = inside(checkout, path).and_then(|real| compare(&real, path, pattern));
    found.unwrap_or_else(Finding::not_met)
}

/// Where the path leads: to a regular file in the checkout, and nowhere else. The error is why there is no file to look into.
fn inside(checkout: &Path, path: &str) -> Result<PathBuf, String> {
    let wrong = |what: &str| format!("`{path}` {what}");
    let place = checkout.join(path);
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if place.is_symlink() => {
            wrong("is a symlink that leads nowhere")
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => wrong("does not exist"),
        _ => wrong(&format!("cannot be looked at: {error}")),
    };
    let real = place.canonicalize().map_err(unreadable)?;
    if !real.starts_with(checkout.canonicalize().map_err(unreadable)?) {
        return Err(wrong("leads out of the repository by a symlink"));
    }
    let about = fs::metadata(&real).map_err(unreadable)?;
    if about.is_dir() {
        return Err(wrong("is a directory and not a file"));
    }
    if !about.is_file() {
        return Err(wrong("is not a regular file"));
    }
    Ok(real)
}

fn compare(file: &Path, path: &str, pattern: Option<&Regex>) -> Result<Finding, String> {
    let Some(pattern) = pattern else { return Ok(Finding::met()) };
    // Something else may be in its place by now.
    let text = towline_files::read(file, MOST_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            format!("`{path}` is larger than {} MiB, so its text is not searched", MOST_BYTES >> 20)
        }
        _ => format!("`{path}` cannot be read: {error}"),
    })?;
    if pattern.is_match(&text) {
        return Ok(Finding::met());
    }
    let problem = match text.is_empty() {
        true => format!("`{path}` is empty and does not match `{pattern}`"),
        false => format!("the text of `{path}` does not match `{pattern}`; this is its beginning"),
    };
    Ok(Finding::not_met(problem).with_evidence(evidence::beginning(&text)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::validate::text_pattern;

    /// A checkout with files and symlinks of every kind, and something beside it.
    fn checkout() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let checkout = scratch.path().join("checkout");
        fs::create_dir_all(checkout.join("docs")).unwrap();
        fs::write(checkout.join("docs/a.md"), "# Title\r\n\n## 1.2\nfixed\n").unwrap();
        fs::write(checkout.join("empty"), "").unwrap();
        fs::write(scratch.path().join("outside"), "secret").unwrap();
        symlink("docs/a.md", checkout.join("symlink")).unwrap();
        symlink("docs", checkout.join("symlink-to-directory")).unwrap();
        symlink("nothing", checkout.join("dangling")).unwrap();
        symlink("../outside", checkout.join("out")).unwrap();
        symlink("..", checkout.join("up")).unwrap();
        (scratch, checkout)
    }

    fn looked(path: &str, pattern: Option<&str>) -> Finding {
        let (_scratch, checkout) = checkout();
        let pattern = pattern.map(|pattern| text_pattern(pattern).unwrap());
        look(&checkout, path, pattern.as_ref())
    }

    #[test]
    fn a_file_that_is_there_is_enough_without_a_pattern() {
        for path in ["docs/a.md", "./docs/a.md", "empty", "symlink", "symlink-to-directory/a.md"] {
            assert_eq!(looked(path, None), Finding::met(), "{path}");
        }
    }

    #[test]
    fn what_is_no_file_in_the_checkout_is_named() {
        for (path, problem) in [
            ("no", "`no` does not exist"),
            ("docs/no", "`docs/no` does not exist"),
            ("docs/a.md/no", "`docs/a.md/no` does not exist"),
            ("docs", "`docs` is a directory and not a file"),
            ("symlink-to-directory", "`symlink-to-directory` is a directory and not a file"),
            ("dangling", "`dangling` is a symlink that leads nowhere"),
            ("out", "`out` leads out of the repository by a symlink"),
            ("up/outside", "`up/outside` leads out of the repository by a symlink"),
        ] {
            assert_eq!(looked(path, None), Finding::not_met(problem));
            assert_eq!(looked(path, Some("secret")), Finding::not_met(problem));
        }
    }

    #[test]
    fn a_fifo_a_socket_and_a_device_are_not_met_at_once() {
        let (_scratch, checkout) = checkout();
        let fifo = checkout.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        symlink("fifo", checkout.join("symlink-to-fifo")).unwrap();
        let _listener = UnixListener::bind(checkout.join("socket")).unwrap();
        symlink("/dev/zero", checkout.join("device")).unwrap();
        let pattern = text_pattern("x").unwrap();
        for (path, problem) in [
            ("fifo", "`fifo` is not a regular file"),
            ("symlink-to-fifo", "`symlink-to-fifo` is not a regular file"),
            ("socket", "`socket` is not a regular file"),
            ("device", "`device` leads out of the repository by a symlink"),
        ] {
            for pattern in [None, Some(&pattern)] {
                assert_eq!(look(&checkout, path, pattern), Finding::not_met(problem));
            }
            // In the place of a file that was one when it was looked at.
            let raced = compare(&checkout.join(path), path, Some(&pattern));
            assert!(raced.is_err_and(|problem| problem.contains("cannot be read")), "{path}");
        }
    }

    #[test]
    fn a_pattern_sees_lines_and_the_whole_text() {
        for pattern in ["Title", "^## 1\\.2$", "^# Title$", "(?s)Title.*fixed", "1\\.2\nfixed", "(?i)FIXED"] {
            assert_eq!(looked("docs/a.md", Some(pattern)), Finding::met(), "{pattern}");
        }
        for pattern in ["^1\\.2", "Title.*fixed", "\\A## 1"] {
            let problem =
                format!("the text of `docs/a.md` does not match `{pattern}`; this is its beginning");
            let expected = Finding::not_met(problem).with_evidence("# Title\n\n## 1.2\nfixed\n".to_owned());
            assert_eq!(looked("docs/a.md", Some(pattern)), expected);
        }
        let empty = Finding::not_met("`empty` is empty and does not match `x`");
        assert_eq!(looked("empty", Some("x")), empty);
    }

    #[test]
    fn a_file_above_the_limit_is_not_searched_and_bytes_that_are_no_text_are() {
        let (_scratch, checkout) = checkout();
        let pattern = text_pattern("x").unwrap();
        let file = File::create(checkout.join("large")).unwrap();
        file.set_len(MOST_BYTES).unwrap();
        let found = look(&checkout, "large", Some(&pattern));
        assert_eq!(
            found,
            Finding::not_met("the text of `large` does not match `x`; this is its beginning"),
            "at the limit it is searched"
        );
        file.set_len(MOST_BYTES + 1).unwrap();
        let too_large = Finding::not_met("`large` is larger than 16 MiB, so its text is not searched");
        assert_eq!(look(&checkout, "large", Some(&pattern)), too_large);
        assert_eq!(look(&checkout, "large", None), Finding::met());

        fs::write(checkout.join("bytes"), b"\xff\xfex\0").unwrap();
        assert_eq!(look(&checkout, "bytes", Some(&pattern)), Finding::met());
    }
}
