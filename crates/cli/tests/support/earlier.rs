//! A state directory as an earlier release left it (`tests/earlier_release/make.sh`), on a desk of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use towline_testkit::scratch::clean_command;

use super::Desk;

/// The program whose path the files of the release name.
const PROGRAM: &str = env!("CARGO_BIN_EXE_towline");

/// A desk with the goals of the release, and an agent that does its work now.
pub(crate) fn desk_of_release() -> Desk {
    let desk = Desk::with_script(|dir| towline_testkit::hostile::doing(dir, "echo fixed > fix.txt"));
    unpack(&desk, &desk.home.towline());
    desk
}

/// Unpacks the archive beside the state directory, which is seen at `state` from here.
pub(crate) fn unpack(desk: &Desk, state: &Path) {
    let root = root(desk);
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier_release/state.tar.gz");
    let unpacked = tempfile::tempdir_in(&root).expect("a folder");
    let extracted = clean_command("tar")
        .arg("xzf")
        .arg(archive)
        .arg("-C")
        .arg(unpacked.path())
        .status()
        .expect("tar starts");
    assert!(extracted.success());
    let here = root.display().to_string();
    let placed = |text: &str| text.replace("@ROOT@", &here).replace("@TOWLINE@", PROGRAM);
    put_paths(unpacked.path(), &placed);
    for project in ["project", "folder"] {
        fs::rename(unpacked.path().join(project), root.join(project)).expect("moved");
    }
    make_database(&unpacked.path().join("towline.sql"), &unpacked.path().join("towline/towline.db"));
    let copied = clean_command("cp").arg("-a").arg(unpacked.path().join("towline/.")).arg(state).status();
    assert!(copied.expect("cp starts").success());
}

fn make_database(sql: &Path, file: &Path) {
    let sql = fs::read_to_string(sql).expect("the database");
    // Sessions of the release can be resumed however long ago it was packed.
    let sql = ["\"idle\":{\"secs\":", "\"age\":{\"secs\":"].iter().fold(sql, |sql, limit| {
        assert!(sql.contains(limit), "no session has a limit");
        sql.replace(limit, &format!("{limit}9999"))
    });
    let database = rusqlite::Connection::open(file).expect("a database");
    // Its tables are in the order of their names.
    database.pragma_update(None, "foreign_keys", "OFF").expect("a setting");
    database.execute_batch(&sql).expect("what the release stored");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// Where the repository of most goals is.
pub(crate) fn project(desk: &Desk) -> PathBuf {
    root(desk).join("project")
}

/// The id of the goal with this title.
pub(crate) fn goal(desk: &Desk, title: &str) -> String {
    let list = desk.towline(["ls", "--all", "--json"]).json();
    let rows = list.as_array().expect("rows");
    let row = rows.iter().find(|row| row["title"] == title).unwrap_or_else(|| panic!("{title}: {list}"));
    row["id"].as_str().expect("an id").to_owned()
}

fn root(desk: &Desk) -> PathBuf {
    desk.home.towline().parent().expect("the folder of all").to_owned()
}

/// Puts paths of this machine into every text below a folder.
fn put_paths(folder: &Path, placed: &dyn Fn(&str) -> String) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.is_symlink() {
            put_paths(&path, placed);
        } else if let Ok(text) = fs::read_to_string(&path)
            && text.contains('@')
        {
            fs::write(&path, placed(&text)).expect("written");
        }
    }
}
