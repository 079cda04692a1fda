-- enrich_link: what is known of link $1 from now on. Zero rows: there is no such link.
update link_canonical set
  state = 'enriched', title = $2, description = $3, canonical_url = $4, language = $5, redirects_to = $6,
  enriched_at = $7, last_error = null, aside_at = null
where id = $1
