//! `key = value, key = value`, read so that one mistake does not hide the next.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, Lit, Meta, Token};

use crate::mistakes::Mistakes;

/// One `key = value`. The value is whatever stands before the next comma.
pub(crate) struct Pair {
    pub(crate) key: Ident,
    pub(crate) value: TokenStream,
}

/// Every pair in every `#[job(…)]` of these attributes.
pub(crate) fn read(attributes: &[Attribute], mistakes: &mut Mistakes) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for attribute in of_ours(attributes) {
        let Meta::List(list) = &attribute.meta else {
            mistakes.at(attribute, "the keys stand in parentheses: `#[job(kind = \"…\")]`");
            continue;
        };
        let read = |input: ParseStream<'_>| read_list(input, mistakes);
        match read.parse2(list.tokens.clone()) {
            Ok(more) => pairs.extend(more),
            Err(error) => mistakes.add(error),
        }
    }
    pairs
}

/// Those of these attributes that are `#[job …]`.
pub(crate) fn of_ours(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("job"))
}

fn read_list(input: ParseStream<'_>, mistakes: &mut Mistakes) -> syn::Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    while !input.is_empty() {
        // `crate` is a key as well as a keyword.
        if input.peek(Ident::peek_any) {
            let key = input.call(Ident::parse_any)?;
            let equals: Option<Token![=]> = input.parse()?;
            let value = value(input, mistakes)?;
            match equals {
                Some(_) if !value.is_empty() => pairs.push(Pair { key, value }),
                Some(_) => mistakes.at(&key, format!("`{key}` needs a value after its `=`")),
                None => mistakes.at(&key, format!("`{key}` needs a value: `{key} = …`")),
            }
        } else {
            let other = until_comma(input)?;
            match other.is_empty() {
                true => mistakes.add(input.error("there is a comma too many")),
                false => mistakes.at(other, "this is no `key = value`"),
            }
        }
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(pairs)
}

/// Up to the next comma, or up to where one is missing: `kind = "a" queue = "b"`.
fn value(input: ParseStream<'_>, mistakes: &mut Mistakes) -> syn::Result<TokenStream> {
    if !(input.peek(Lit) && input.peek2(Ident::peek_any)) {
        return until_comma(input);
    }
    let literal = input.parse::<proc_macro2::TokenTree>()?;
    mistakes.add(input.error("a comma is missing before this"));
    Ok(literal.into())
}

fn until_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<proc_macro2::TokenTree>()?]);
    }
    Ok(tokens)
}
