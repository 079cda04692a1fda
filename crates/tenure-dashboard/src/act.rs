//! Buttons, and what they do.
//!
//! A button is a form that names a call of the API: its method, its path, and the members of its body. The form comes
//! back to `POST /do`, which checks that it is one of ours and makes the call as the person who sent it. So an act on a
//! page is checked, journaled and refused exactly as the same call of a program.

use std::fmt::Write as _;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tenure_server::problem::{FORBIDDEN, MALFORMED, Problem};

use crate::bits::{Markup, escaped, many};
use crate::desk::{Desk, bits_of};
use crate::frame::{Said, Trouble};
use crate::pages::secret;
use crate::person::{Person, to};
use crate::sent::{BEFORE, Sent};

/// Most that an answer of the API is read of.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Largest form.
const FORM_BYTES_MAX: usize = 64 << 10;

/// A button with its form.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    label: String,
    method: &'static str,
    path: String,
    done: String,
    ask: Option<String>,
    is_grave: bool,
    has_reason: bool,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
enum Field {
    /// Sent as it is.
    Hidden(String, String),
    /// Asked for: name, label, example, whether it is needed.
    Text(&'static str, String, String, bool),
    /// Asked for, filled with what is set now: name, label, example, value.
    Filled(&'static str, String, String, String),
    /// One of several: name, label, (value, text).
    Choice(&'static str, String, Vec<(String, String)>),
    /// Some of several: name, label, values.
    Several(&'static str, String, Vec<&'static str>),
}

impl Act {
    /// Presses it at once.
    pub(crate) fn new(label: &str, path: impl Into<String>, done: impl Into<String>) -> Self {
        Self {
            label: label.to_owned(),
            method: "POST",
            path: path.into(),
            done: done.into(),
            ask: None,
            is_grave: false,
            has_reason: false,
            fields: Vec::new(),
        }
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// Says what will happen, and asks why.
    pub(crate) fn ask(mut self, ask: impl Into<String>) -> Self {
        self.ask = Some(ask.into());
        self.has_reason = true;
        self
    }

    /// The same where the call takes no reason.
    pub(crate) fn confirm(mut self, ask: impl Into<String>) -> Self {
        self.ask = Some(ask.into());
        self
    }

    /// It ends or deletes something.
    pub(crate) fn grave(mut self) -> Self {
        self.is_grave = true;
        self
    }

    pub(crate) fn hidden(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.push(Field::Hidden(name.to_owned(), value.into()));
        self
    }

    pub(crate) fn text(mut self, name: &'static str, label: &str, example: &str) -> Self {
        self.fields.push(Field::Text(name, label.to_owned(), example.to_owned(), false));
        self
    }

    /// A field that shows what is set now. A form that replaces a whole thing sends all of it back; one that changes a
    /// thing (`PATCH`) sends what was changed.
    pub(crate) fn filled(mut self, name: &'static str, label: &str, example: &str, value: Option<String>) -> Self {
        self.fields.push(Field::Filled(name, label.to_owned(), example.to_owned(), value.unwrap_or_default()));
        self
    }

    pub(crate) fn needed(mut self, name: &'static str, label: &str, example: &str) -> Self {
        self.fields.push(Field::Text(name, label.to_owned(), example.to_owned(), true));
        self
    }

    pub(crate) fn choice(mut self, name: &'static str, label: &str, choices: Vec<(String, String)>) -> Self {
        self.fields.push(Field::Choice(name, label.to_owned(), choices));
        self
    }

    pub(crate) fn several(mut self, name: &'static str, label: &str, values: &[&'static str]) -> Self {
        self.fields.push(Field::Several(name, label.to_owned(), values.to_vec()));
        self
    }

    /// As HTML: a button, or one that opens a form.
    pub(crate) fn markup(&self, token: &str, here: &str) -> Markup {
        let tone = if self.is_grave { "button grave" } else { "button" };
        let mut fields = String::new();
        let mut hide = |name: &str, value: &str| {
            let _ = write!(fields, "<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escaped(value));
        };
        hide("_token", token);
        hide("_back", here);
        hide("_method", self.method);
        hide("_path", &self.path);
        hide("_done", &self.done);
        let is_change = self.method == "PATCH";
        let asked: String = self.fields.iter().map(|field| field.markup(is_change)).collect();
        let label = escaped(&self.label);
        let Some(ask) = &self.ask else {
            return Markup(format!(
                "<form class=\"act\" method=\"post\" action=\"/do\">{fields}{asked}<button class=\"{tone}\">{label}</button></form>"
            ));
        };
        let reason = match self.has_reason {
            true => {
                "<label>Why <span class=\"dim\">(kept in the journal)</span>\
                     <input name=\"reason\" maxlength=\"500\" autocomplete=\"off\" autofocus></label>"
            }
            false => "",
        };
        let id = self.id();
        Markup(format!(
            "<button type=\"button\" class=\"{tone}\" popovertarget=\"{id}\">{label}…</button>\
             <form class=\"sheet\" id=\"{id}\" popover method=\"post\" action=\"/do\" aria-label=\"{label}\">{fields}<p>{}</p>{asked}{reason}\
             <div class=\"row\"><button class=\"{tone} main\">{label}</button>\
             <button type=\"button\" popovertarget=\"{id}\" popovertargetaction=\"hide\">Do nothing</button></div></form>",
            escaped(ask)
        ))
    }

    /// The same act has the same id, also when the page was fetched again.
    fn id(&self) -> String {
        let hash = Sha256::digest(format!("{} {} {}", self.label, self.method, self.path).as_bytes());
        format!("act-{}", bits_of(&hash[..6]))
    }
}

impl Field {
    fn markup(&self, is_change: bool) -> String {
        match self {
            Self::Hidden(name, value) => {
                format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", escaped(name), escaped(value))
            }
            Self::Text(name, label, example, is_needed) => {
                let need = if *is_needed { " required" } else { "" };
                format!(
                    "<label>{}<input name=\"{name}\" placeholder=\"{}\" autocomplete=\"off\"{need}></label>",
                    escaped(label),
                    escaped(example)
                )
            }
            Self::Filled(name, label, example, value) => {
                let value = escaped(value);
                let before = match is_change {
                    true => format!("<input type=\"hidden\" name=\"{BEFORE}{name}\" value=\"{value}\">"),
                    false => String::new(),
                };
                format!(
                    "{before}<label>{}<input name=\"{name}\" placeholder=\"{}\" value=\"{value}\" autocomplete=\"off\"></label>",
                    escaped(label),
                    escaped(example)
                )
            }
            Self::Choice(name, label, choices) => {
                let choices: String = choices
                    .iter()
                    .map(|(value, text)| format!("<option value=\"{}\">{}</option>", escaped(value), escaped(text)))
                    .collect();
                format!("<label>{}<select name=\"{name}\">{choices}</select></label>", escaped(label))
            }
            Self::Several(name, label, values) => {
                let ticks: String = values
                    .iter()
                    .map(|value| {
                        format!(
                            "<label class=\"tick\"><input type=\"checkbox\" name=\"{name}:list\" value=\"{value}\">{value}</label>"
                        )
                    })
                    .collect();
                format!("<fieldset><legend>{}</legend>{ticks}</fieldset>", escaped(label))
            }
        }
    }
}

/// Does what a button says.
pub(crate) async fn act(State(desk): State<Desk>, person: Person, request: Request) -> Result<Response, Trouble> {
    let form = desk.app.read_form(request, FORM_BYTES_MAX).await?;
    let shown = form.iter().find(|(name, _)| name == "_token").map_or("", |(_, value)| value);
    if person.token.is_empty() || !is_same(shown, &person.token) {
        let detail = "this form is of another session, or of none: reload the page and press the button again";
        return Err(Problem::new(FORBIDDEN, detail).into());
    }
    let sent = Sent::read(form)?;
    let back = to(&sent.back);
    let paths: Vec<String> = match sent.each.is_empty() {
        true if sent.path.contains("{}") => {
            let text = "Nothing was chosen: tick the jobs that are meant.".to_owned();
            return Ok(Said { is_good: false, text }.on(back));
        }
        true => vec![sent.path.clone()],
        false => sent.each.iter().map(|one| sent.path.replace("{}", &crate::bits::encoded(one))).collect(),
    };
    let (mut good, mut refused) = (0_usize, None);
    for path in &paths {
        let request = Request::builder()
            .method(sent.method.clone())
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(Value::Object(sent.body.clone()).to_string()))
            .map_err(|_| Problem::new(MALFORMED, "the form names no call"))?;
        let answer = desk.app.call(person.caller.clone(), request).await;
        let (status, document) = read(answer).await;
        if !status.is_success() {
            refused = refused.or_else(|| Some(document["detail"].as_str().unwrap_or("it was refused").to_owned()));
            continue;
        }
        good += 1;
        // What is shown once goes to the screen and nowhere else.
        if let Some(page) = secret::shown_once(&document, &sent.back) {
            return Ok(page.into_response());
        }
        if let Some(id) = document["id"].as_str().filter(|_| path == "/v1/operations") {
            return Ok(Said { is_good: true, text: sent.done }.on(to(&format!("/operations/{id}"))));
        }
    }
    desk.forget_queues().await;
    let said = match refused {
        None if sent.done.is_empty() => Said { is_good: true, text: format!("{} done.", many(good, "job")) },
        None => Said { is_good: true, text: sent.done },
        Some(why) if good == 0 => Said { is_good: false, text: format!("Not done: {why}.") },
        Some(why) => Said { is_good: false, text: format!("{good} of {} done; then: {why}.", paths.len()) },
    };
    Ok(said.on(back))
}

/// The status of an answer and what it says.
async fn read(answer: Response) -> (StatusCode, Value) {
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await.unwrap_or_default();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Compares without telling by its time where they differ.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_changes_a_thing_says_what_was_there() {
        let form = |method| {
            let act = Act::new("Set rule", "/v1/rules/g", "done").method(method);
            act.filled("rate", "Rate", "30/m", Some("5/s".to_owned())).ask("?").markup("token", "/").0
        };
        assert!(form("PATCH").contains("name=\"_before:rate\" value=\"5/s\""), "{}", form("PATCH"));
        assert!(!form("PUT").contains("_before"), "a form that replaces a thing sends all of it");
    }

    #[test]
    fn what_a_button_says_is_text() {
        let act =
            Act::new("<b>", "/v1/x?\"><script>", "done").ask("'<i>'").hidden("a", "\"><x").text("t", "<l>", "<e>");
        let markup = act.markup("token", "/\"><y").0;
        for bad in ["<b>", "<script>", "<i>", "<x", "<y", "<l>", "<e>"] {
            assert!(!markup.contains(bad), "{bad}: {markup}");
        }
    }
}
