//! Which commit an agent's clone is on, read without git: nothing in that clone can be trusted to hold still for it.

use std::path::Path;

use towline_core::Commit;

use crate::refs::{is_id, read_ref};

/// How many names may lead to one another.
const LONGEST_CHAIN: usize = 5;

/// What HEAD of a clone leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A commit, by what the files contain. Whether it is there is another question.
    Commit(Commit),
    /// A branch without commits.
    Unborn,
    /// The files cannot be read or make no sense.
    Unreadable,
}

/// Reads HEAD of a git directory. The refs are in `common_dir`, which is another one in a linked worktree.
pub(crate) fn head_of(git_dir: &Path, common_dir: &Path) -> Head {
    let mut name = "HEAD".to_owned();
    for _ in 0..LONGEST_CHAIN {
        let place = if name == "HEAD" { git_dir } else { common_dir };
        match read_ref(place, &name) {
            Ok(Some(text)) => match text.strip_prefix("ref:") {
                Some(target) => {
                    name = target.trim().to_owned();
                    if !is_plain(&name) {
                        return Head::Unreadable;
                    }
                }
                None if is_id(&text) => return Head::Commit(Commit::new(text)),
                None => return Head::Unreadable,
            },
            Ok(None) if name == "HEAD" => return Head::Unreadable,
            Ok(None) => return Head::Unborn,
            Err(_) => return Head::Unreadable,
        }
    }
    Head::Unreadable
}

/// Whether a name stays where refs are.
fn is_plain(name: &str) -> bool {
    name.starts_with("refs/")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\0'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn head_is_followed_through_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(head_of(dir.path(), dir.path()), Head::Unreadable);
        put("HEAD", "ref: refs/heads/main\n");
        assert_eq!(head_of(dir.path(), dir.path()), Head::Unborn);
        put("packed-refs", &format!("# pack-refs with: peeled\n{ID} refs/heads/main\n^{ID}\n"));
        assert_eq!(head_of(dir.path(), dir.path()), Head::Commit(Commit::new(ID)));
        put("refs/heads/main", "ref: refs/heads/other\n");
        put("refs/heads/other", &format!("{}\n", ID.replace('0', "1")));
        assert_eq!(head_of(dir.path(), dir.path()), Head::Commit(Commit::new(ID.replace('0', "1"))));
        put("HEAD", &format!("{ID}\n"));
        assert_eq!(head_of(dir.path(), dir.path()), Head::Commit(Commit::new(ID)));
    }

    #[test]
    fn what_leads_elsewhere_or_nowhere_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let head = dir.path().join("HEAD");
        fs::write(dir.path().join("secret"), ID).unwrap();
        for text in [
            "ref: ../secret",
            "ref: refs/../secret",
            "ref: /etc/passwd",
            "ref: refs/heads/.hidden",
            "nonsense",
            "",
            "0123",
        ] {
            fs::write(&head, text).unwrap();
            assert_eq!(head_of(dir.path(), dir.path()), Head::Unreadable, "{text}");
        }
        fs::write(&head, "ref: refs/heads/loop").unwrap();
        fs::create_dir_all(dir.path().join("refs/heads")).unwrap();
        fs::write(dir.path().join("refs/heads/loop"), "ref: refs/heads/loop").unwrap();
        assert_eq!(head_of(dir.path(), dir.path()), Head::Unreadable);
        fs::remove_file(&head).unwrap();
        symlink(dir.path().join("secret"), &head).unwrap();
        assert_eq!(head_of(dir.path(), dir.path()), Head::Unreadable);
    }
}
