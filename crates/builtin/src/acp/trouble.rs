//! The reasons why a turn fails, and the errors that its prompt gets.

use std::io;

use serde_json::json;
use towline_provider::{ErrorClass, ProviderError};

use super::rpc::Refusal;

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Trouble {
    /// The provider gave no answer.
    Provider(#[from] ProviderError),
    /// A record could not be written, so nothing may act on it.
    Journal(#[from] io::Error),
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Provider(error) => refusal(&error),
            Trouble::Journal(error) => Self::internal(format!(
                "the session file cannot be written ({error}); make room on its disk and send the prompt again"
            )),
        }
    }
}

/// The conversation does not fit, and a summary does not help.
pub(super) fn overflow(message: impl Into<String>) -> Trouble {
    let class = ErrorClass::Overflow;
    Trouble::Provider(ProviderError { class, status: None, until: None, message: message.into() })
}

/// The code is the provider's HTTP status, or else the usual one of this class of errors.
fn refusal(error: &ProviderError) -> Refusal {
    let (name, usual) = match error.class {
        ErrorClass::Auth => ("auth", 401),
        ErrorClass::Limited => ("limited", 429),
        ErrorClass::Overflow => ("overflow", 413),
        ErrorClass::Server => ("server", 503),
        ErrorClass::Network => ("network", 503),
        ErrorClass::CutOff => ("cut_off", 502),
        ErrorClass::Refused => ("refused", 400),
        ErrorClass::Invalid => ("invalid", 400),
    };
    let status = error.status.filter(|status| *status >= 400).map_or(usual, i64::from);
    let mut data = json!({"class": name});
    if let Some(until) = error.until {
        data["until"] = until.to_string().into();
    }
    Refusal { code: status, message: error.message.clone(), data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_code_unless_the_provider_sent_one() {
        let until = "2026-01-02T03:04:05Z";
        for (class, name, code) in [
            (ErrorClass::Auth, "auth", 401),
            (ErrorClass::Limited, "limited", 429),
            (ErrorClass::Overflow, "overflow", 413),
            (ErrorClass::Server, "server", 503),
            (ErrorClass::Network, "network", 503),
            (ErrorClass::CutOff, "cut_off", 502),
            (ErrorClass::Refused, "refused", 400),
            (ErrorClass::Invalid, "invalid", 400),
        ] {
            for (status, code) in [(None, code), (Some(200), code), (Some(418), 418)] {
                let error = ProviderError { class, status, until: None, message: "words".into() };
                let wanted = Refusal { code, message: "words".into(), data: json!({"class": name}) };
                assert_eq!(Refusal::from(Trouble::from(error.clone())), wanted);
                let later = ProviderError { until: until.parse().ok(), ..error };
                let data = json!({"class": name, "until": until});
                assert_eq!(Refusal::from(Trouble::from(later)), Refusal { data, ..wanted });
            }
        }
    }
}
