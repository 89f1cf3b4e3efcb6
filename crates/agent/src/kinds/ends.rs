//! Exits and ends for the tests that classify them.

use towline_core::End;

use crate::protocol::ProcessEnd;

pub(super) fn exited(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

pub(super) fn crashed(message: &str) -> End {
    End::Crashed { message: message.into() }
}

pub(super) fn auth(message: &str) -> End {
    End::Auth { message: message.into() }
}

pub(super) fn server(status: Option<u16>, message: &str) -> End {
    End::ServerError { status, message: message.into() }
}
