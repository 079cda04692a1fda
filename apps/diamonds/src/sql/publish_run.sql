-- publish_run: notes the publication, and the revision that was read: the job that read it knows best. Never zero rows.
update diamonds_run set
  as_of = $2,
  published_at = $3,
  published_stones = $4
where run_id = $1
