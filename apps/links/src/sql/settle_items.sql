-- settle_items: counts the links of import $1 that have ended since it last looked. Zero rows: none has.
update link_item
set outcome = (select case link.state when 'enriched' then 'enriched' else 'dead' end
               from link_canonical link where link.id = link_item.link)
where import = $1 and outcome is null
  and exists (select 1 from link_canonical link where link.id = link_item.link and link.state in ('enriched', 'dead'))
