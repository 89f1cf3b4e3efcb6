//! `towline up`: the server, in the foreground.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use towline_app::report::trust_level;
use towline_app::{
    Action, Context, Error, Rules, ServerPlace, State, VERSION, await_suspended, require_webhook_secret,
    sandbox_of, server_place, working,
};
use towline_config::Config;
use towline_core::{Sandbox, SandboxMode, parse_duration};
use towline_engine::{Clock, Engine, ServerInfo, ServerStart, SystemClock, operator_token, take_place_of};
use towline_server::{Courier, OperatorToken, ServerSettings, serve};

use crate::commands::down::ids;
use crate::commands::foreground::Interrupts;
use crate::commands::{journal, open};
use crate::output;
use towline_terminal::clock_time;
use towline_view::journal_line;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline up                          serve on 127.0.0.1:8689
  towline up --listen 127.0.0.1:0     on a free port, which is printed
  towline up --slots 8                eight goals at once")]
pub(crate) struct Up {
    /// Where to serve HTTP; port 0 picks a free one [default: `listen` in `[server]`]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// How many goals run at once [default: `pool` in `[caps]`]
    #[arg(long, value_name = "N", value_parser = slots)]
    slots: Option<usize>,
    /// How long running turns may take to finish when the server is stopped [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// How long running turns may take to finish, unless it is given.
const WAIT: Duration = Duration::from_secs(30);

/// The most that the configuration takes for a cap, too.
const MOST_SLOTS: usize = 10_000;

fn slots(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(slots @ 1..=MOST_SLOTS) => Ok(slots),
        _ => Err(format!("give a number from 1 to {MOST_SLOTS}; to start no goals, do not run the server")),
    }
}

/// Runs the server until it is stopped.
pub(crate) async fn run(context: &Context, args: Up) -> Result<(), Error> {
    let context = context.for_server()?;
    let state = context.state()?;
    let place = server_place(&state).await?;
    let suspended = match &place {
        ServerPlace::Taken(server) => return report_running(server, &args),
        ServerPlace::Suspended(server, _) => Some(server),
        ServerPlace::Free(_) => None,
    };
    let (rules, wait) = (Rules::new(&context, args.slots)?, args.wait.unwrap_or(WAIT));
    let Config { server: settings, notify, sandbox, .. } = context.operators_configuration()?;
    require_webhook_secret(&context, &notify)?;
    let address = args.listen.clone().unwrap_or_else(|| settings.listen.to_string());
    let listener = bind(&address, suspended).await?;
    let failed = |what| move |error| Error::internal(format!("cannot {what}: {error}"));
    let address = listener.local_addr().map_err(failed("find out the address of the server"))?;
    let token = operator_token(&state.home).map_err(failed("make the token of the operator"))?;
    // After all that can be refused: it may take a minute.
    let start = match take_place(&state, place).await? {
        Ok(start) => start,
        Err(server) => return report_running(&server, &args),
    };
    // Before anything is started: a signal that comes early must not leave it behind.
    let mut interrupts = Interrupts::listen()?;
    let engine = Arc::new(context.pool_engine(state.clone(), Arc::new(rules))?);
    let announced = engine
        .announce(address.to_string(), VERSION.to_owned(), args.slots, wait)
        .map_err(failed("announce the server"))?;
    // Whoever looks from now on finds this server.
    drop(start);
    greet(&context, address, announced.server().pid)?;
    print(&confinement(sandbox.mode, sandbox_of(&context, &sandbox)));
    let stored = state.clone();
    let served = ServerSettings {
        context,
        engine: Arc::clone(&engine),
        state,
        listener,
        hosts: settings.hosts,
        operator_token: OperatorToken::new(&token),
        version: VERSION.to_owned(),
    };
    let notifications = Notifications::deliver(&served)?;
    let _journal = print_events(&served).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut http = JoinSet::new();
    http.spawn(serve(served, async {
        // Either way it is over.
        let _ = stopped.await;
    }));
    until_stopped(&engine, &stored, &mut interrupts, wait, notifications).await?;
    drop(announced);
    let _ = stop.send(());
    match http.join_next().await {
        Some(Ok(served)) => served.map_err(failed("serve HTTP")),
        Some(Err(lost)) => Err(Error::internal(format!("the server was lost: {lost}"))),
        None => Ok(()),
    }
}

/// Takes the place of the server, which may be that of a suspended one. Gives back another server that has it by then.
async fn take_place(state: &State, place: ServerPlace) -> Result<Result<ServerStart, ServerInfo>, Error> {
    let place = match place {
        ServerPlace::Suspended(server, start) => {
            await_suspended(state, server, start, report_suspended).await?
        }
        place => place,
    };
    Ok(match place {
        ServerPlace::Free(start) => Ok(start),
        ServerPlace::Taken(server) => Err(server),
        ServerPlace::Suspended(server, start) => {
            let taken = take_place_of(&state.home, &server);
            taken.map_err(|error| {
                Error::internal(format!("cannot take over from the suspended server: {error}"))
            })?;
            output::print(format_args!("taking over from the suspended server (pid {})", server.pid));
            Ok(start)
        }
    })
}

/// Waits until the server is to stop, and then for turns and notifications.
async fn until_stopped(
    engine: &Engine,
    stored: &State,
    interrupts: &mut Interrupts,
    patience: Duration,
    notifications: Notifications,
) -> Result<(), Error> {
    tokio::select! {
        () = interrupts.stop() => {}
        lost = engine.place_lost() => {
            // What runs belongs to the other server, or to nobody.
            engine.drain(Duration::ZERO).await;
            return Err(lost.into());
        }
    }
    print(&match working(stored).await.unwrap_or_default().as_slice() {
        [] => "stopping".to_owned(),
        running => format!(
            "stopping; these turns have {} to finish: {} (Ctrl-C or `towline down` again does not wait for them; agents keep running)",
            towline_core::show_duration(patience),
            ids(running)
        ),
    });
    let ending = async {
        engine.drain(patience).await;
        // After the turns: what they led to may be on its way already.
        notifications.finish().await;
    };
    tokio::select! {
        () = ending => {}
        // Nothing is ended: what runs is left to the next server at once.
        () = interrupts.stop() => engine.drain(Duration::ZERO).await,
    }
    // What cannot be read now is adopted by the next server all the same.
    let left = working(stored).await.unwrap_or_default();
    if !left.is_empty() {
        print(&format!("still running, until the next `towline up` continues them: {}", ids(&left)));
    }
    Ok(())
}

fn greet(context: &Context, address: SocketAddr, pid: u32) -> Result<(), Error> {
    output::print(format_args!("towline is up: http://{address}/ (pid {})", pid));
    // A link in a log would sign others in.
    if output::is_terminal() {
        output::print(format_args!("the page: {}", open::link(context, &address.to_string())?));
    }
    print("stop it with Ctrl-C or `towline down`; the next `towline up` continues goals that run");
    if !address.ip().is_loopback() {
        output::eprint(format_args!(
            "warning: {address} is not a loopback address, and this is plain HTTP: others on the network can read what is sent, \
             the token included; put a proxy with TLS in front of it, or use a tunnel"
        ));
    }
    Ok(())
}

/// What confines the goals of this server, unless their project has other settings.
fn confinement(mode: SandboxMode, sandbox: Option<Sandbox>) -> String {
    let level = trust_level(sandbox);
    match (mode, sandbox) {
        (SandboxMode::Off, _) => {
            format!("goals run without a sandbox, at trust level {level}: `mode = \"off\"` in [sandbox]")
        }
        (_, None) => {
            format!(
                "goals run without a sandbox, at trust level {level}: none works here (the fix: towline doctor)"
            )
        }
        (_, Some(Sandbox::Landlock)) => {
            format!("goals run in a sandbox of landlock, at trust level {level} (for more: towline doctor)")
        }
        (_, Some(Sandbox::Bubblewrap)) => {
            format!("goals run in a sandbox of bubblewrap, at trust level {level}")
        }
    }
}

/// The delivery of notifications, as long as it lives.
struct Notifications {
    courier: JoinSet<()>,
    stop: oneshot::Sender<()>,
}

impl Notifications {
    fn deliver(served: &ServerSettings) -> Result<Self, Error> {
        let store = Arc::clone(&served.state.store);
        let courier = Courier::new(served.context.clone(), store, || SystemClock.now());
        let courier =
            courier.map_err(|error| Error::internal(format!("cannot deliver notifications: {error}")))?;
        let courier = courier.reporting(|goal, what| {
            let now = SystemClock.now();
            print(&journal_line(now, goal, what, now));
        });
        let (stop, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(courier.run(served.engine.changes(), async {
            // Either way it is over.
            let _ = stopped.await;
        }));
        Ok(Self { courier: task, stop })
    }

    /// Waits for deliveries under way: the next server would run their commands again. Each takes less than a minute.
    async fn finish(mut self) {
        let _ = self.stop.send(());
        while self.courier.join_next().await.is_some() {}
    }
}

/// Prints what happens on a terminal, as long as the task lives.
async fn print_events(served: &ServerSettings) -> Result<JoinSet<()>, Error> {
    let store = Arc::clone(&served.state.store);
    let mut task = JoinSet::new();
    if output::is_terminal() {
        let events = served.engine.pool_events(store.last_place().await?);
        task.spawn(journal::write(events, store, served.context.clone(), print));
    }
    Ok(task)
}

fn report_running(server: &ServerInfo, args: &Up) -> Result<(), Error> {
    let running = format!("a server is running already: http://{}/ (pid {})", server.address, server.pid);
    if args.listen.is_some() || args.slots.is_some() || args.wait.is_some() {
        return Err(Error::usage(format!("{running}; these options are for its start"))
            .hint([("stop it", Action::Down), ("then start it again", Action::Up)]));
    }
    output::print_or_exit(running);
    Ok(())
}

fn report_suspended(server: &ServerInfo, until: Timestamp) {
    let until = clock_time(until, SystemClock.now());
    let pid = server.pid;
    print(&format!("the server (pid {pid}) is suspended; taking over at {until}, unless it continues"));
}

/// Prints a line of the server, on a terminal in lines that fit it.
fn print(text: &str) {
    output::fitted(text).iter().for_each(output::print);
}

async fn bind(address: &str, suspended: Option<&ServerInfo>) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|error| {
        let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
        let holder = suspended.filter(|server| port(&server.address) == port(address));
        match (error.kind(), holder) {
            // It has the port as long as its process lives.
            (std::io::ErrorKind::AddrInUse, Some(ServerInfo { pid, address: held, .. })) => Error::person(
                format!("cannot listen on {address}: the suspended server (pid {pid}) has {held}"),
            )
            .hint(format!(
                "end it with `kill -KILL {pid}`, or use another address: towline up --listen 127.0.0.1:8690"
            )),
            (std::io::ErrorKind::AddrInUse, None) => {
                Error::usage(format!("cannot listen on {address}: {error}"))
                    .hint("another program has this port; choose a free one: towline up --listen 127.0.0.1:0")
            }
            _ => Error::usage(format!("cannot listen on {address}: {error}"))
                .hint("give an address and a port: towline up --listen 127.0.0.1:8689"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_names_what_confines_goals_and_their_level() {
        let line = confinement(SandboxMode::Auto, Some(Sandbox::Bubblewrap));
        assert_eq!(line, "goals run in a sandbox of bubblewrap, at trust level 2");
        for (mode, sandbox, wanted) in [
            (SandboxMode::Off, None, "without a sandbox, at trust level 1: `mode = \"off\"`"),
            (SandboxMode::Auto, None, "without a sandbox, at trust level 1: none works here"),
            (SandboxMode::Required, Some(Sandbox::Landlock), "in a sandbox of landlock, at trust level 1"),
        ] {
            let line = confinement(mode, sandbox);
            assert!(line.contains(wanted), "{line}");
        }
    }
}
