//! `write`: replaces a whole file in one step.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::places::Places;
use super::words::count;
use super::{Reach, ToolKind};

pub(super) const TOOL: Tool = Tool {
    name: "write",
    about: "Writes a whole file, replacing its content. Missing folders are created. To change a part of a \
            file, use `edit`.",
    fields: &[
        Field::required("path", Form::Text, "The file, relative to the workspace."),
        Field::required("content", Form::Text, "The whole content."),
    ],
    kind: ToolKind::Edit,
    reach: Reach::Acts,
    work: Work::Files(|places, arguments, _| write(places, arguments)),
};

pub(super) fn write(places: &Places, arguments: &Arguments) -> Result<String, String> {
    let path = places.to_write(arguments.required("path"))?;
    let content = arguments.required("content");
    let shown = places.shown(&path);
    let was_there = path.exists();
    replace(&path, content.as_bytes()).map_err(|error| format!("{shown} cannot be written: {error}"))?;
    let lines = count(content.lines().count(), "line", "lines");
    Ok(match was_there {
        true => format!("Replaced {shown}: {lines}, {} bytes.", content.len()),
        false => format!("Created {shown}: {lines}, {} bytes.", content.len()),
    })
}

/// Replaces a file in one step: a reader sees the old content or the new, never a mixture.
pub(super) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(".towline-")
        .permissions(Permissions::from_mode(0o666)) // less what the umask takes
        .tempfile_in(folder)?;
    file.write_all(content)?;
    if let Ok(before) = path.metadata() {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn write_in(root: &Path, path: &str, content: &str) -> Result<String, String> {
        let arguments = TOOL.parse(&json!({"path": path, "content": content})).unwrap();
        write(&Places::new(root, &[]), &arguments)
    }

    #[test]
    fn a_new_file_gets_its_folders_and_the_usual_mode() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("usual"), "").unwrap();
        let got = write_in(root.path(), "a/b/c.txt", "one\ntwo\n");
        assert_eq!(got, Ok("Created a/b/c.txt: 2 lines, 8 bytes.".to_owned()));
        let made = root.path().join("a/b/c.txt");
        assert_eq!(fs::read_to_string(&made).unwrap(), "one\ntwo\n");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&made), mode(&root.path().join("usual")));
    }

    #[test]
    fn an_existing_file_keeps_its_mode_and_a_symlink_to_it_remains() {
        let root = tempfile::tempdir().unwrap();
        let script = root.path().join("run.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o751)).unwrap();
        symlink("run.sh", root.path().join("alias")).unwrap();
        let got = write_in(root.path(), "alias", "new");
        assert_eq!(got, Ok("Replaced run.sh: 1 line, 3 bytes.".to_owned()));
        assert_eq!(fs::read_to_string(&script).unwrap(), "new");
        assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o751);
        assert!(root.path().join("alias").symlink_metadata().unwrap().is_symlink());
        let left: Vec<_> =
            fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_failed_write_is_reported_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let words = write_in(root.path(), "file/below", "x").unwrap_err();
        assert!(words.starts_with("file/below cannot be written: "), "{words}");
    }
}
