-- Where in the bytes of a list an expansion is: the start of a line, and the ordinal of that line's first item, so
-- that going on costs no reading of the lines before.
alter table sonar.expansion
  add column at_byte bigint not null default 0,
  add column at_ordinal bigint not null default 0;
