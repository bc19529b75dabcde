-- Note how an endpoint answers: its last answer, the number of void answers in a row, and the last success. This is
-- written every few seconds, and when the answer changes, because each update leaves a dead row.
UPDATE endpoint
SET
    last_answer = %(answer)s, last_answer_at = now(),
    void_answers = CASE WHEN %(understood)s::boolean THEN 0 ELSE void_answers + %(voids)s END,
    void_since = CASE WHEN %(understood)s::boolean THEN NULL ELSE coalesce(void_since, now()) END,
    last_success_at = CASE WHEN %(understood)s::boolean THEN now() ELSE last_success_at END
WHERE id = %(id)s
RETURNING id
