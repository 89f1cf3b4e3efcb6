//! A user's home and project, and what is asked for there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use towline_app::{Context, Draft, Error, Request, accept, draft, widening_file};
use towline_core::{Envelope, Event, Goal, GoalState, Source};
use towline_testkit::scratch::{Home, Project, SANDBOX};

/// A user's home and project.
pub(crate) struct Desk {
    pub(crate) home: Home,
    pub(crate) project: Project,
}

impl Desk {
    pub(crate) fn new(configuration: &str) -> Self {
        let project = Project::new();
        let agent = "[defaults]\nagents = [\"first\"]\n[agents.first]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n\
                     [agents.second]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n";
        project.write("towline.toml", format!("{agent}{configuration}"));
        project.commit("configuration");
        let desk = Self { home: Home::new(), project };
        desk.home.without_sandbox();
        desk.trust();
        desk
    }

    /// Accepts what the project's file sets, where it can be read.
    pub(crate) fn trust(&self) {
        self.trust_in(self.project.path());
    }

    /// The same for the project in this directory.
    pub(crate) fn trust_in(&self, directory: &Path) {
        let context = self.context();
        if let Ok(Some(file)) = widening_file(&context, directory) {
            accept(&context, &file, Timestamp::UNIX_EPOCH).expect("recorded");
        }
    }

    pub(crate) fn context(&self) -> Context {
        let mut environment: BTreeMap<String, String> = self.home.env().into_iter().collect();
        // Nothing is started here, so the project's own setting counts.
        environment.remove(SANDBOX);
        Context::new(environment, self.project.path().to_path_buf(), PathBuf::from("/bin/true"))
    }

    pub(crate) async fn draft(&self, request: Request) -> Result<Draft, Error> {
        let prompt = request.prompt.or_else(|| Some("work".to_owned()).filter(|_| request.file.is_none()));
        draft(&self.context(), &Request { prompt, ..request }, Timestamp::UNIX_EPOCH).await
    }

    /// Stores a goal that nothing has happened to yet.
    pub(crate) async fn store_goal(&self) -> Goal {
        self.store_goal_as(|_| ()).await
    }

    /// Stores a goal in the state that `change` makes.
    pub(crate) async fn store_goal_as(&self, change: impl FnOnce(&mut GoalState)) -> Goal {
        let goal = self.draft(Request::default()).await.expect("a draft").goal;
        let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
        let store = self.context().state().expect("a state directory").store;
        let mut state = GoalState::new(&goal);
        change(&mut state);
        store.create(&goal, &state, created).await.expect("stored");
        goal
    }
}
