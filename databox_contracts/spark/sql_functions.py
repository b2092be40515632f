"""What a condition in SQL may call: functions of Spark that are pure, of one row, and give the same answer every time.

What is not in these tables is refused, whether Spark has it or not: a function of the session, of a catalog or of a
later version of Spark could read something else than the row, run code, or answer differently the next time.
"""

from __future__ import annotations

from typing import Final

_FUNCTIONS: Final = """
abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees div e exp
expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow power
radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh unhex
width_bucket bit_count bit_get getbit
try_add try_subtract try_multiply try_divide try_mod
coalesce nvl nvl2 ifnull nullif nullifzero zeroifnull isnull isnotnull isnan nanvl if iff equal_null decode
ascii base64 bit_length btrim char char_length character_length chr collate concat concat_ws contains elt encode
endswith find_in_set format_number format_string initcap instr is_valid_utf8 lcase left length len levenshtein like
locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay position printf quote regexp
regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace
reverse right rlike rpad rtrim sentences soundex space split split_part startswith string substr substring
substring_index to_char to_varchar translate trim try_to_binary try_validate_utf8 ucase unbase64 upper
url_encode url_decode try_url_decode parse_url try_parse_url to_number try_to_number to_binary
crc32 hash md5 sha sha1 sha2 xxhash64
boolean tinyint smallint int bigint float double decimal date timestamp binary cast try_cast typeof
add_months convert_timezone curdate current_date current_timestamp date_add date_diff date_format
date_from_unix_date
date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract
from_unixtime from_utc_timestamp hour last_day localtimestamp make_date make_dt_interval make_interval
make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname months_between
next_day now quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff
to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
try_make_interval try_make_timestamp try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds
unix_timestamp weekday weekofyear year
aggregate array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
array_union arrays_overlap arrays_zip cardinality element_at exists filter flatten forall get reduce sequence size
slice sort_array transform try_element_at zip_with
map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
map_zip_with named_struct str_to_map struct transform_keys transform_values
from_csv from_json get_json_object json_array_length json_object_keys parse_json schema_of_json to_csv to_json
try_parse_json try_variant_get variant_get is_variant_null
"""
ALLOWED: Final = frozenset(_FUNCTIONS.split())
"""By the name that Spark's SQL has for them; clocks are among them since they are replaced by `as_of`."""

_FORMS: Final = """
and or xor case if cast trycast regexplike extract dpipe currentdate currenttimestamp localtimestamp fromtimezone struct
pow arraycontains arrayposition arrayoverlaps jsonextract jsonextractscalar
"""
ALLOWED_FORMS: Final = frozenset(_FORMS.split())
"""By the parser's name, what it takes for a function and Spark's SQL writes as an operator or a phrase."""
