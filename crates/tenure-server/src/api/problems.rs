//! A paragraph about every error code: what a problem's `type` leads to.

use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ok;
use crate::app::App;
use crate::cursor::Page;
use crate::problem::{CODES, Code, NOT_FOUND, Problem};
use crate::query::Segments;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_problems)).routes(routes!(show_problem))
}

/// A kind of problem.
#[derive(Debug, Serialize, ToSchema)]
struct CodeLine {
    code: &'static str,
    status: u16,
    title: &'static str,
    /// When it happens and what to do
    about: &'static str,
}

impl From<&Code> for CodeLine {
    fn from(code: &Code) -> Self {
        Self { code: code.word, status: code.status, title: code.title, about: code.about }
    }
}

/// Every error code
#[utoipa::path(get, path = "/v1/problems", tag = "problems", security(()), responses((status = 200, body = Page<CodeLine>)))]
async fn list_problems() -> Result<Response, Problem> {
    ok(&Page::whole(CODES.iter().map(CodeLine::from).collect()))
}

/// One error code
#[utoipa::path(get, path = "/v1/problems/{code}", tag = "problems", params(("code" = String, Path)), security(()),
    responses((status = 200, body = CodeLine)))]
async fn show_problem(path: Segments) -> Result<Response, Problem> {
    let word: String = path.get("code")?;
    let code = CODES.iter().find(|code| code.word == word);
    ok(&CodeLine::from(code.ok_or_else(|| Problem::new(NOT_FOUND, format!("code {word} is not known here")))?))
}
