-- release frees a claim, if the owner has it.
--
-- KEYS     the key
-- ARGV     the owner
free(KEYS[1], ARGV[1])
return {}
