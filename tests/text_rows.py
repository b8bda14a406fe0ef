"""Lines of CSV, and what Spark makes of them."""

SCHEMA = (
    "s string, i int, h short, f double, g float, b boolean, d date, t timestamp, "
    "n timestamp_ntz, x decimal(6,2)"
)
_OF_LINES = {
    "a,1,1,1.5,1.5,true,2020-01-01,2020-01-01 00:00:00,2020-01-01 00:00:00,1.005":
    "a|1|1|1.5|1.5|True|2020-01-01|2020-01-01 00:00:00+00:00|2020-01-01 00:00:00|1.01",
    ",,,,,,,,,":
    "None|None|None|None|None|None|None|None|None|None",
    '"","","","","","","","","",""':
    "None|None|None|None|None|None|None|None|None|None",
    " b , 2 , 2 , 2.5 , 2.5 , true ,2020-01-02,2020-01-02T00:00:01.123456789Z,2020-01-02, 1":
    " b |None|None|2.5|2.5|None|2020-01-02|2020-01-02 00:00:01.123456+00:00|2020-01-02 00:00:00|"
    "None",
    "NA,NA,NA,NaN,NaN,NA,NA,NA,NA,NA":
    "NA|None|None|nan|nan|None|None|None|None|None",
    "null,99999999999999999999,40000,Inf,1e39,TRUE,2020-01-02 10:00:00,2020-01-02 01:02,"
    "2020-01-02T01:02:03.1,12345":
    "null|None|None|inf|inf|True|2020-01-02|2020-01-02 01:02:00+00:00|"
    "2020-01-02 01:02:03.100000|None",
    '"multi,c",+5,-32768,5d,.5,False,2020-02-30,2020-02-30 00:00:00,2020-02-30,1e2':
    "multi,c|5|-32768|5.0|0.5|False|None|None|None|100.00",
    "  ,1.0,1.0,0x10,1_0,yes,2020-01-01,2020-01-01 00:00:00.1+0200,2020-01-01 00:00:00.000001,NaN":
    "  |None|None|None|None|None|2020-01-01|2019-12-31 22:00:00.100000+00:00|"
    "2020-01-01 00:00:00.000001|None",
    "ab,-0,-0,-Infinity,-1.5E-3,1,2020-01-02T10,2020-01-02T00:00:01+02:00,"
    "2020-01-02T24:00:00,-0.005":
    "ab|0|0|-inf|-0.001500000013038516|None|2020-01-02|2020-01-01 22:00:01+00:00|None|-0.01",
}  # fmt: skip
LINES = list(_OF_LINES)
VALUES = [line.split("|") for line in _OF_LINES.values()]  # `str` of each
