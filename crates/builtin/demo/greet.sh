#!/bin/sh
# Greets whoever is named, or else the world: sh greet.sh [NAME]

name=$1
echo "Hello $name"
