//! Opening: who may read the file, and the error for a file that is not ours to open.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use towline_core::Seq;

use super::super::connection::open_existing;
use super::{Scratch, SqliteStore, number};
use crate::conformance::samples::{append, claimed, created, notice};
use crate::upgrade::Unguarded;
use crate::{Listing, Store, StoreError, UpgradeGuard};

#[tokio::test]
async fn files_and_new_directories_are_for_their_owner_alone() {
    let scratch = Scratch::new();
    let existing = scratch.0.path().join("existing");
    fs::create_dir(&existing).expect("a directory");
    fs::set_permissions(&existing, fs::Permissions::from_mode(0o755)).expect("its mode");
    let directory = existing.join("state").join("towline");
    let database = directory.join("towline.db");
    let store = SqliteStore::open(&database).expect("it opens");
    created(&store, 1).await;
    let modes = [existing.clone(), existing.join("state"), directory].map(|path| mode(&path));
    assert_eq!(modes, [0o755, 0o700, 0o700]);
    let modes = ["db", "db-wal", "db-shm"].map(|extension| mode(&database.with_extension(extension)));
    assert_eq!(modes, [0o600; 3]);
}

#[tokio::test]
async fn a_file_that_is_empty_is_a_new_database() {
    let scratch = Scratch::new();
    fs::write(scratch.database(), "").expect("an empty file, as a crash right after its creation leaves it");
    assert_eq!(scratch.store().list(&Listing::first(9)).await.expect("a list"), vec![]);
}

/// Connections of one process act as processes here: to SQLite they are the same, and they start closer
/// together.
#[test]
fn a_new_file_that_many_open_at_once_is_made_ready_once() {
    for _ in 0..20 {
        let scratch = Scratch::new();
        let path = scratch.database();
        fs::write(&path, "").expect("an empty file");
        let together = Barrier::new(8);
        thread::scope(|scope| {
            let open = || {
                together.wait();
                open_existing(&path, &(Arc::new(Unguarded) as Arc<dyn UpgradeGuard>)).map(drop)
            };
            let opening: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for opened in opening {
                opened.join().expect("it does not panic").expect("it opens");
            }
        });
        assert_eq!(number(&scratch.raw(), "SELECT COUNT(*) FROM refinery_schema_history"), 9);
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    drop(scratch.store());
    scratch
        .raw()
        .execute_batch(
            "INSERT INTO refinery_schema_history
             SELECT 99, name, applied_on, checksum FROM refinery_schema_history WHERE version = 1",
        )
        .expect("a newer version was here");
    let before = fs::read(scratch.database()).expect("the file");
    let refused = SqliteStore::open(&scratch.database()).expect_err("it is too new");
    assert!(matches!(refused, StoreError::TooNew { .. }), "{refused:?}");
    assert_eq!(fs::read(scratch.database()).expect("the file"), before);
}

#[test]
fn a_database_of_another_build_is_refused_by_name() {
    let scratch = Scratch::new();
    drop(scratch.store());
    scratch
        .raw()
        .execute_batch("UPDATE refinery_schema_history SET checksum = '1'")
        .expect("another build was here");
    assert_refused(&scratch.database(), "made by another build");
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let text = "not a database\n".repeat(1_000);
    fs::write(scratch.database(), &text).expect("some file");
    assert_refused(&scratch.database(), "no database of Towline");
    assert_eq!(fs::read_to_string(scratch.database()).expect("the file"), text);
}

#[test]
fn a_path_that_cannot_be_opened_is_refused_by_name() {
    let scratch = Scratch::new();
    fs::write(scratch.0.path().join("file"), "").expect("a file");
    assert_refused(&scratch.0.path().join("file").join("towline.db"), "cannot create it");
    assert_refused(scratch.0.path(), "it is a directory and not a regular file");
}

#[test]
fn what_is_in_the_place_of_a_database_file_is_refused_by_name_and_left_as_it_is() {
    type Plant = fn(&Path);
    let plants: [(&str, Plant); 4] = [
        ("a FIFO", |path| make_fifo(path)),
        ("a symlink", |path| symlink("precious", path).expect("a symlink")),
        ("a directory", |path| fs::create_dir(path).expect("a directory")),
        ("a socket", |path| drop(UnixListener::bind(path).expect("a socket"))),
    ];
    for (kind, plant) in plants {
        for name in ["towline.db", "towline.db-wal", "towline.db-shm", "towline.db-journal"] {
            let scratch = Scratch::new();
            fs::write(scratch.0.path().join("precious"), "the user's").expect("written");
            let path = scratch.0.path().join(name);
            plant(&path);
            let refused = SqliteStore::open(&scratch.0.path().join("towline.db")).expect_err("refused");
            let expected =
                format!("{}: it is {kind} and not a regular file; remove it and try again", path.display());
            assert_eq!(refused.to_string(), expected);
            assert_eq!(fs::read_to_string(scratch.0.path().join("precious")).expect("it"), "the user's");
        }
    }
}

#[test]
fn a_database_of_the_users_under_our_name_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let [users, ours] = ["mine.sqlite", "towline.db"].map(|name| scratch.0.path().join(name));
    let mine = rusqlite::Connection::open(&users).expect("a database");
    mine.execute_batch("CREATE TABLE mine(x); INSERT INTO mine VALUES (1);").expect("written");
    drop(mine);
    let before = fs::read(&users).expect("the file");
    fs::hard_link(&users, &ours).expect("a hard link");
    assert_refused(&ours, "it is a file with 2 names (hard links)");
    assert_eq!(fs::read(&users).expect("the file"), before);
}

#[test]
fn a_state_directory_behind_a_symlink_can_be_used() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.0.path().join("real")).expect("a directory");
    symlink("real", scratch.0.path().join("symlink")).expect("a symlink");
    SqliteStore::open(&scratch.0.path().join("symlink/towline.db")).expect("it opens");
    assert!(scratch.0.path().join("real/towline.db").exists());
}

fn make_fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
}

#[tokio::test]
async fn a_damaged_database_is_named_as_such() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    let text = vec![notice("x".repeat(100_000), 1)];
    store.append(append(&goal, lease.generation, Seq(1), text)).await.expect("it fits");
    drop(store);
    let mut bytes = fs::read(scratch.database()).expect("the file");
    bytes[4_096..].fill(0xff);
    fs::write(scratch.database(), bytes).expect("damage");
    let error = match SqliteStore::open(&scratch.database()) {
        Ok(store) => store.load(goal.id).await.expect_err("its tables are damaged"),
        Err(error) => error,
    };
    assert!(error.to_string().contains("it is damaged"), "{error}");
}

#[tokio::test]
async fn a_state_that_cannot_be_read_names_its_goal() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let goal = created(&store, 1).await;
    scratch.raw().execute_batch("UPDATE parts SET body = '{}'").expect("somebody changes it");
    let error = store.load(goal.id).await.expect_err("it is no state").to_string();
    assert!(error.contains(&format!("the state of goal {} cannot be read", goal.id)), "{error}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// The error of opening names the problem and the file.
fn assert_refused(path: &Path, words: &str) {
    let refused = SqliteStore::open(path).expect_err("it cannot be opened");
    let StoreError::Database { path: of, message } = &refused else { panic!("{refused:?}") };
    assert_eq!(of, &path.display().to_string());
    assert!(message.contains(words), "{message}");
}
