-- record_attempt: how an attempt to deliver ended; zero rows: it has arrived, or a later attempt wrote before.
update passport_webhook_delivery set
  fence = $3, status = $4, attempts = $5, http_status = $6, response_headers = $7, response_body = $8,
  error_message = $9, delivered_at = $10
where tenant_id = $1 and webhook_delivery_id = $2 and status <> 'DELIVERED' and fence <= $3
