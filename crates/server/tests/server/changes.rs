//! Everything that a request could change, to be compared before and after it.

use std::fmt::Write;
use std::path::Path;

use towline_core::PoolSeq;
use towline_store::{Listing, list_all};

use crate::server::Server;

impl Server {
    /// All goals with their logs, the accounts, and the files of the state directory and of the project.
    pub(crate) async fn everything(&self) -> String {
        let mut all = String::new();
        for listed in list_all(self.store.as_ref(), Listing::all()).await.expect("goals") {
            let record = self.store.load(listed.id()).await.expect("a goal");
            writeln!(all, "{record:?}").expect("written");
        }
        let events = self.store.events_since(PoolSeq(0), usize::MAX).await.expect("events");
        let accounts = self.store.accounts().await.expect("accounts");
        writeln!(all, "{events:?}\n{accounts:?}").expect("written");
        for folder in [self.home.root(), self.project.path()] {
            list_files(folder, &mut all);
        }
        all
    }
}

/// The files below a folder with their lengths.
fn list_files(folder: &Path, all: &mut String) {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let about = path.symlink_metadata().expect("a file");
        writeln!(all, "{} {}", path.display(), about.len()).expect("written");
        if about.is_dir() {
            list_files(&path, all);
        }
    }
}
