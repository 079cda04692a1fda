//! Mistakes, gathered: whoever fixes one wants to see the next one too.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// What is wrong with one type, in the order it was found.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    /// Notes a mistake at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    /// Notes a mistake that somebody else has found.
    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(mistake),
            none => *none = Some(mistake),
        }
    }

    /// One `compile_error!` for each.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(|all| all.to_compile_error()).unwrap_or_default()
    }
}
