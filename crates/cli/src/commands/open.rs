//! `towline open`: the link to the page of the running server.

use std::net::SocketAddr;

use serde::Serialize;
use towline_app::{Action, Context, Error};
use towline_engine::{Clock, ServerInfo, SystemClock, new_sign_in_code, running_server, sign_out_all};

use crate::args::OutputFormat;
use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline open               print a link that signs you in
  towline open --sign-out    end all sessions of the page")]
pub(crate) struct Open {
    /// End all sessions of the page, and links that were not used yet
    #[arg(long, conflicts_with = "json")]
    sign_out: bool,
    #[command(flatten)]
    format: OutputFormat,
}

/// The running server, with a link to its page.
#[derive(Serialize)]
struct OpenReport<'a> {
    link: &'a str,
    #[serde(flatten)]
    server: &'a ServerInfo,
}

/// Prints a new link, or ends all sessions.
pub(crate) fn run(context: &Context, args: &Open) -> Result<(), Error> {
    let home = context.home()?;
    if args.sign_out {
        let ended = sign_out_all(&home);
        let ended = ended.map_err(|error| Error::internal(format!("cannot end the sessions: {error}")))?;
        output::print_or_exit(match ended {
            0 => "nobody was signed in".to_owned(),
            1 => "1 session of the page has ended".to_owned(),
            ended => format!("{ended} sessions of the page have ended"),
        });
        return Ok(());
    }
    let server = running_server(&home)
        .ok_or_else(|| Error::not_found("no server is running").hint([("start one", Action::Up)]))?;
    let link = link(context, &server.address)?;
    if args.format.json {
        output::print_json(Layout::Pretty, &OpenReport { link: &link, server: &server });
    } else {
        output::print_or_exit(&link);
        output::print_fitted(&["the link signs one browser in, within 10 minutes".to_owned()]);
    }
    Ok(())
}

/// A link to the page of the server at this address, which signs in once.
pub(super) fn link(context: &Context, address: &str) -> Result<String, Error> {
    let code = new_sign_in_code(&context.home()?, SystemClock.now());
    let code = code.map_err(|error| Error::internal(format!("cannot make a link to the page: {error}")))?;
    Ok(format!("http://{}/#code={code}", reachable(address)))
}

/// The address by which a browser on this machine reaches the server: one on all addresses is on the loopback interface, too.
pub(super) fn reachable(address: &str) -> String {
    match address.parse::<SocketAddr>() {
        Ok(SocketAddr::V4(all)) if all.ip().is_unspecified() => format!("127.0.0.1:{}", all.port()),
        Ok(SocketAddr::V6(all)) if all.ip().is_unspecified() => format!("[::1]:{}", all.port()),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_here_reaches_a_server_on_all_addresses() {
        let cases = [
            ("127.0.0.1:8689", "127.0.0.1:8689"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.0:80", "10.0.0.0:80"),
            ("[fe80::1]:80", "[fe80::1]:80"),
        ];
        for (address, expected) in cases {
            assert_eq!(reachable(address), expected);
        }
    }
}
