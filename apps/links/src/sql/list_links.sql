-- list_links: links of user $1 behind link $2, at most $3, each once, with the number of places it stands in.
select link.id, link.url, link.domain, link.state, link.title, link.description, link.canonical_url, link.language,
       link.redirects_to, link.last_error, count(*) as placements
from link_import import
  join link_placement placement on placement.import = import.id
  join link_canonical link on link.id = placement.link
where import.user_name = $1 and link.id > $2
group by link.id, link.url, link.domain, link.state, link.title, link.description, link.canonical_url, link.language,
         link.redirects_to, link.last_error
order by link.id limit $3
