package calendar

import (
	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/ar"
	"github.com/rickar/cal/v2/at"
	"github.com/rickar/cal/v2/au"
	"github.com/rickar/cal/v2/be"
	"github.com/rickar/cal/v2/bg"
	"github.com/rickar/cal/v2/br"
	"github.com/rickar/cal/v2/ca"
	"github.com/rickar/cal/v2/ch"
	"github.com/rickar/cal/v2/cz"
	"github.com/rickar/cal/v2/de"
	"github.com/rickar/cal/v2/dk"
	"github.com/rickar/cal/v2/es"
	"github.com/rickar/cal/v2/fr"
	"github.com/rickar/cal/v2/gb"
	"github.com/rickar/cal/v2/gr"
	"github.com/rickar/cal/v2/hr"
	"github.com/rickar/cal/v2/ie"
	"github.com/rickar/cal/v2/it"
	"github.com/rickar/cal/v2/jp"
	"github.com/rickar/cal/v2/lt"
	"github.com/rickar/cal/v2/lv"
	"github.com/rickar/cal/v2/mw"
	"github.com/rickar/cal/v2/nc"
	"github.com/rickar/cal/v2/nl"
	"github.com/rickar/cal/v2/no"
	"github.com/rickar/cal/v2/nz"
	"github.com/rickar/cal/v2/pl"
	"github.com/rickar/cal/v2/ro"
	"github.com/rickar/cal/v2/ru"
	"github.com/rickar/cal/v2/se"
	"github.com/rickar/cal/v2/si"
	"github.com/rickar/cal/v2/sk"
	"github.com/rickar/cal/v2/ua"
	"github.com/rickar/cal/v2/us"
	"github.com/rickar/cal/v2/za"
)

// country is what is known of a country's public holidays. The tables are those of github.com/rickar/cal.
type country struct {
	code, name string // ISO 3166 alpha-2 in lower case
	national   []*cal.Holiday
	regions    []region // ISO 3166-2 without the country, in lower case; each with the national holidays
}

type region struct {
	code     string
	holidays []*cal.Holiday
}

func countries() []country {
	return []country{
		{"ar", "Argentina", ar.Holidays, nil},
		{"at", "Austria", at.Holidays, nil},
		{"au", "Australia", nil, []region{
			{"act", au.HolidaysACT},
			{"nsw", au.HolidaysNSW},
			{"nt", au.HolidaysNT},
			{"qld", au.HolidaysQLD},
			{"sa", au.HolidaysSA},
			{"tas", au.HolidaysTAS},
			{"vic", au.HolidaysVIC},
			{"wa", au.HolidaysWA},
		}},
		{"be", "Belgium", be.Holidays, nil},
		{"bg", "Bulgaria", bg.Holidays, nil},
		{"br", "Brazil", br.Holidays, nil},
		{"ca", "Canada", ca.Holidays, nil},
		{"ch", "Switzerland", ch.Holidays, []region{
			{"ag", ch.HolidaysAG},
			{"ai", ch.HolidaysAI},
			{"ar", ch.HolidaysAR},
			{"be", ch.HolidaysBE},
			{"bl", ch.HolidaysBL},
			{"bs", ch.HolidaysBS},
			{"fr", ch.HolidaysFR},
			{"ge", ch.HolidaysGE},
			{"gl", ch.HolidaysGL},
			{"gr", ch.HolidaysGR},
			{"ju", ch.HolidaysJU},
			{"lu", ch.HolidaysLU},
			{"ne", ch.HolidaysNE},
			{"nw", ch.HolidaysNW},
			{"ow", ch.HolidaysOW},
			{"sg", ch.HolidaysSG},
			{"sh", ch.HolidaysSH},
			{"so", ch.HolidaysSO},
			{"sz", ch.HolidaysSZ},
			{"tg", ch.HolidaysTG},
			{"ti", ch.HolidaysTI},
			{"ur", ch.HolidaysUR},
			{"vd", ch.HolidaysVD},
			{"vs", ch.HolidaysVS},
			{"zg", ch.HolidaysZG},
			{"zh", ch.HolidaysZH},
		}},
		{"cz", "Czechia", cz.Holidays, nil},
		{"de", "Germany", de.Holidays, []region{
			{"bb", de.HolidaysBB},
			{"be", de.HolidaysBE},
			{"bw", de.HolidaysBW},
			{"by", de.HolidaysBY},
			{"hb", de.HolidaysHB},
			{"he", de.HolidaysHE},
			{"hh", de.HolidaysHH},
			{"mv", de.HolidaysMV},
			{"ni", de.HolidaysNI},
			{"nw", de.HolidaysNW},
			{"rp", de.HolidaysRP},
			{"sh", de.HolidaysSH},
			{"sl", de.HolidaysSL},
			{"sn", de.HolidaysSN},
			{"st", de.HolidaysST},
			{"th", de.HolidaysTH},
		}},
		{"dk", "Denmark", dk.Holidays, nil},
		{"es", "Spain", es.Holidays, nil},
		{"fr", "France", fr.Holidays, nil},
		{"gb", "United Kingdom (England and Wales)", gb.Holidays, nil},
		{"gr", "Greece", gr.Holidays, nil},
		{"hr", "Croatia", hr.Holidays, nil},
		{"ie", "Ireland", ie.Holidays, nil},
		{"it", "Italy", it.Holidays, nil},
		{"jp", "Japan", jp.Holidays, nil},
		{"lt", "Lithuania", lt.Holidays, nil},
		{"lv", "Latvia", lv.Holidays, nil},
		{"mw", "Malawi", mw.Holidays, nil},
		{"nc", "New Caledonia", nc.Holidays, nil},
		{"nl", "Netherlands", nl.Holidays, nil},
		{"no", "Norway", no.Holidays, nil},
		{"nz", "New Zealand", nz.Holidays, nil},
		{"pl", "Poland", pl.Holidays, nil},
		{"ro", "Romania", ro.Holidays, nil},
		{"ru", "Russia", ru.Holidays, nil},
		{"se", "Sweden", se.Holidays, nil},
		{"si", "Slovenia", si.Holidays, nil},
		{"sk", "Slovakia", sk.Holidays, nil},
		{"ua", "Ukraine", ua.Holidays, nil},
		{"us", "United States (federal)", us.Holidays, nil},
		{"za", "South Africa", za.Holidays, nil},
	}
}
