//! What pages load: one style sheet, one script, one picture. Their names carry what is in them, so that a browser may
//! keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::desk::bits_of;

struct Asset {
    name: String,
    media_type: &'static str,
    text: &'static str,
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        asset("css", "text/css; charset=utf-8", include_str!("../assets/tenure.css")),
        asset("js", "text/javascript; charset=utf-8", include_str!("../assets/tenure.js")),
        asset("svg", "image/svg+xml", include_str!("../assets/tenure.svg")),
    ]
});

fn asset(ending: &str, media_type: &'static str, text: &'static str) -> Asset {
    let hash = Sha256::digest(text.as_bytes());
    Asset { name: format!("tenure.{}.{ending}", bits_of(&hash[..6])), media_type, text }
}

/// The path of the style sheet, the script or the picture.
pub(crate) fn path(ending: &str) -> String {
    let name = ASSETS.iter().find(|asset| asset.name.ends_with(ending)).map_or("", |asset| asset.name.as_str());
    format!("/assets/{name}")
}

pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.media_type)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.text).into_response()
}
